"""The one kind of error that an operator sees."""


class OperatorError(Exception):
    """A refusal or failure told in one sentence that names the thing and the way out.

    Services raise it (or a subclass of their own) for whatever can go wrong on the machine; the panel shows it as a
    notice and stays up, a command prints it on standard error and exits 1.  Anything else that is raised is a defect
    of gpudeck.

    `more` are further lines below the sentence, for a failure that has been made out: what it means, what comes next.
    """

    def __init__(self, sentence: str, *more: str) -> None:
        super().__init__(sentence)
        self.more = more
