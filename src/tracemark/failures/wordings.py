r"""How errors are worded: what a text opens with, what a shell or a program complains of, what a refusal says.

Each wording is one alternative of a pattern, whole words of it, and begins where the text begins. What counts errors,
or says that there is none (`Error rate: 0.1%`, `errors: none`), is worded alike and is told apart here.

Invariant: linear time. A pattern is tried at one place of a line, and what it passes over is bounded.
"""

from __future__ import annotations

import re

_EMPTY_VALUES = (
    r"none|null|nil|undefined|false|n/?a|ok",
    r"no (?:errors?|exceptions?|problems?|issues?|failures?)\b[^\n]{0,40}",
    r"0+(?:\.0+)?(?: (?:errors?|exceptions?|failures?|issues?|problems?|found)\b[^\n]{0,40})?",
    r"-?\d+(?:\.\d+)? ?%|\d*\.\d+|\[\s*\]|\{\s*\}|\"\"|''|-+",
)
EMPTY = rf"(?i:\s*(?:{'|'.join(_EMPTY_VALUES)})\s*(?:[.;!]?\s*(?:\Z|\n)|,|(?<=0 )\[?[a-z]+[\]:]))"
"""What stands behind the colon where there was no error, or where a figure is told; part of a pattern."""
_EMPTY_OF_NAMED = r"\s*(?:null|none|undefined|false|n/a|\[\]|\{\}|-?\d*\.\d+ ?%?)\s*(?:\Z|\n)"
"""The same behind a name: `KeyError: 0` and `KeyError: None` are errors of Python."""
_DOING = (
    r"(?:in|at|from|while|when|during|occurred|invalid|unknown|cannot|could|failed|unable|missing|unsupported|no such"
    r"|response from"
    r"|handling (?:requests?|calls?|messages?|events?|commands?|tools?)"
    r"|(?!(?:handling|reporting|logging|tracking|checking|monitoring|correcting|messaging)\b)\w{2,20}ing)\b"
)
"""What goes on after `Error` without a colon, unlike `Error rate` or `Error handling`."""
_KINDS = (
    r"(?i:(?:cmake|mcp|input|internal|runtime|api|http|network|validation|syntax|type|value|server|client|database|sql"
    r"|pars(?:e|ing)|connection|authentication|permission|unexpected|compil(?:e|ation|er)|build|execution|tool"
    r"|unhandled|uncaught|system|critical|fatal|python) ){0,2}"
)
_MARK = r"[\[<(*#>\s]{0,4}"
_OPENINGS = (
    (
        rf"(?:{_KINDS}(?:Error|ERROR|[Ee]xception|error)|FATAL|[Ff]atal|panic)[\])*]{{0,3}}(?:\[[^\]\n]{{0,40}}\])?"
        rf"(?: \w{{1,9}}\d| -?\d{{1,6}}| \((?:code |errno )?-?\w{{1,12}}\))?(?: {_DOING}[^\n:]{{0,60}})?:(?!{EMPTY})"
    ),
    rf"{_KINDS}(?:Error|ERROR|[Ee]xception) (?:{_DOING}|(?:code:? ?|#)?[1-9]\d{{0,5}}\b(?![.%]))",
    r"(?:Error|ERROR)(?:[!.,](?=\s|\Z)| - |\s*(?:\n|\Z))",
    r"ERROR [\w-]*[./]\S",
    (
        r"(?:E\d{3,4} |(?:Uncaught|Unhandled) )?[A-Za-z_][\w.]{0,80}(?:Error|Exception)"
        rf"(?: {_DOING}[^\n:]{{0,60}})?(?::(?!{_EMPTY_OF_NAMED})|\s*\Z)"
    ),
    r"ImportError while loading conftest ",
)
_WHOLE_OPENINGS = (
    r"CONFLICT \([\w/ ]{1,30}\): ",
    r"\[(?:ERROR|FATAL)\] (?!\d+\b)\S",
    r"\[Errno -?\d{1,5}\]",
    r"net::ERR_[A-Z]",
    r"E(?:NOENT|ACCES|EXIST|PERM|ISDIR|NOTDIR|NOTEMPTY|CONNREFUSED|CONNRESET|TIMEDOUT|ADDRINUSE): ",
    r"terminate called after throwing ",
    r"thread '[^'\n]{1,80}'(?: \(\d{1,20}\))? panicked at ",
)
OPENS = re.compile("|".join([rf"{_MARK}(?:{'|'.join(_OPENINGS)})", *_WHOLE_OPENINGS]))
"""What a text opens with that tells an error."""

HARNESS = re.compile(
    r"Your proposed edit has introduced|Previous response had parsing errors|No tool calls found"
    r"|Your (?:command|action|output) (?:was|has been) (?:not |rejected|refused|blocked|cancel|denied|interrupt|abort"
    r"|kill|terminat|timed)|Your bash command contained syntax errors|Operation '[^'\n]{1,40}' is not supported"
    r"|Your last (?:output|response|command) (?:did|does|was not|is not|could not|had |has no|contain|fail|timed|must)"
    r"|The last command <command>|The command '[^\n]{0,300}?' was cancelled because "
)
"""What harnesses say to an agent whose call they did not carry out."""

_PROGRAM = re.compile(r"[\w./+-]{1,80}(?::\d+){0,2}(?:\[\d+\])?:(?= )")
_COMPLAINED = (
    r"command not found\b|: not found\s*\Z|cannot access |can't (?:cd to|open) | error: (?!\d+\s)",
    (
        r"(?:No such file or directory|[Pp]ermission denied|Is a directory|Not a directory|File exists"
        r"|Name or service not known|Connection refused|Connection timed out|No route to host)\s*(?:\Z|\()"
    ),
    r"(?:[Cc]ould not|unable to) resolve host|is not a git command\b|cannot find (?:main )?(?:module|package)",
    r"cannot (?:stat|open|create|remove|overwrite)(?: \w+)? ['‘`]",
    r"syntax error(?: near\b|:(?! *\d+\s*\Z)|,| at\b|\s*\Z)",
    r"(?:No space left on device|Read-only file system|Cannot allocate memory)\b|No module named |Unmatched ",
    r"(?:invalid|unrecognized|illegal) option|missing (?:\w+ )?operand|option requires an argument",
)
_COMPLAINT = re.compile("|".join(_COMPLAINED))
_COMPLAINING = (
    "not found", "cannot ", "can't ", " error", "No such", "ermission denied", "a directory", "exists", "not known",
    "refused", "timed out", "No route", "resolve host", "git command", "No space", "Read-only", "Cannot allocate",
    "No module", "Unmatched", "option", "operand",
)  # fmt: skip
"""One of these stands in every complaint; to look for them is quicker than to try its wordings."""
_COMPLAINT_WITHIN = 300
"""Characters behind a program's name in which its complaint begins."""
_COMPLAINTS = re.compile(
    r"[\w./+-]{1,80}(?::\d+:\d+|\(\d+,\d+\)): (?:fatal )?error[ :]|g?make(?:\[\d+\])?: \*\*\* |npm (?:ERR!|error) "
    r"|curl: \(\d+\)|E: (?:Unable|Could|Package|Failed|Some|Sub-process|The |Invalid|Broken|Conflicting|Version|You )"
)

_NOUNS = (
    r"(?:tools?|functions?|(?:sub)?commands?|options?|flags?|arguments?|parameters?|params?|fields?|keys?|attributes?"
    r"|propert(?:y|ies)|names?|ids?|identifiers?|types?|formats?|actions?|operations?|methods?|endpoints?|routes?|paths?"
    r"|files?|folders?|director(?:y|ies)|hosts?|columns?|tables?|databases?|users?|customers?|orders?|reservations?"
    r"|bookings?|accounts?|products?|items?|encodings?|variables?|symbols?|modules?|packages?|models?|errors?"
    r"|exceptions?|resources?|records?|city|airport|currency|country|units?|keywords?|tokens?|sessions?|tasks?|tickets?"
    r"|branch|revision|language|locale|timezone)\b"
)
_ACTIONS = (
    r"(?:requests?|read|write|socket|calls?|executions?|commands?|operations?|authentication|logins?|connections?|payments?"
    r"|transactions?|uploads?|downloads?|builds?|compilation|quer(?:y|ies)|validation|updates?|parsing|tools?|tests?|jobs?|process"
    r"|installation|imports?|search|lookup|bookings?|check-in|deployment|migration|assertions?)"
)
_QUOTED = r"['`\"][^'`\"\n]{1,60}['`\"]"
_REFUSALS = (
    r"(?:invalid|unrecogni[sz]ed|unsupported)(?:\s|:)|no such (?!luck|thing)|failed to ",
    (
        rf"unknown (?:(?:[a-z][a-z-]* ){{0,2}}{_NOUNS}|(?:[a-z][a-z-]* ){{0,3}}[`'\"<]"
        r"|(?:[a-z][a-z-]* ){1,3}(?=\S{0,40}[\d_])(?=\S{0,40}[A-Za-z])\S)"
    ),
    r"fail(?:ed|ure): ?(?!\d+\s*(?:[,;/|]|of\b|tests?\b|\Z))",
    # `Cannot be combined with other offers` is a rule and no refusal
    (
        r"(?:cannot|can't|could not|couldn't|unable to) (?!(?:wait|stop|help|believe|complain|find image)\b"
        r"|be (?!(?:found"
        r"|empty|null"
        r"|blank|negative|parsed|resolved|opened|read|reached|loaded|processed|completed)\b))"
        r"(?-i:[a-z`'\"]|(?:GET|POST|PUT|DELETE|PATCH|HEAD)\b)"
    ),
    r"ran into [^\n]{0,200}?(?:errno|error|exception|problem|while trying)\b",
    r"(?:permission|access) (?:to [^\n:]{1,80} )?(?:is |was )?denied\b|operation not permitted\b",
    r"not (?:allowed|permitted|authori[sz]ed|found)\b(?! \w+:)",
    r"(?:the user|you) (?:is|are) not (?:authori[sz]ed|authenticated|permitted)\b",
    r"insufficient (?:funds|balance|credits?|permissions?|privileges?|quota|memory|space|stock)\b",
    r"(?:\w{1,60}\(\) )?(?:missing \d+ required |(?:got an )?unexpected keyword argument)",
    rf"(?:argument|parameter|field|property) {_QUOTED} is (?:required|missing|invalid|not )",
    rf"{_QUOTED} is (?:a required property|not recognized as )|the term {_QUOTED} is not recognized",
    r"missing (?:required )?(?:arguments?|parameters?|fields?|keys?|options?)\b",
    (
        r"(?:the|this) (?:(?:tool )?call|command|request|action|operation) (?:was|has been|is) "
        r"(?:rejected|denied|blocked|not (?:allowed|permitted|supported|authori[sz]ed|valid)\b)"
    ),
    (
        r"timed out(?: |\s*[.!]?\s*\Z)|time-?out(?:\s*[.!]?\s*\Z|: (?=[a-z]+ [a-z]+ [a-z])"
        r"| (?:errors?|expired|exceeded|reached|occurred|waiting|while|after)\b)"
        r"|(?:[\w.]{1,60}: )?timeout \d+ ?m?s exceeded"
    ),
    r"tool (?:['`\"][^\n]{1,60}|[^\n:]{1,60}) (?:not found|does not exist|failed)\b|no tool named",
    r"(?:an?|the|this) (?:[\w-]{1,40} ){0,3}(?:error|exception) (?:has |was )?(?:been )?(?:occur|raised|thrown|happen)",
    r"[1-9]\d{0,5} validation errors? for |something went wrong|internal server error\b",
    r"bad (?:request|gateway)(?=\s*(?:[.:!,;(]|\Z))|response status code (?:does not|is [45])",
    r"command exited with (?:a )?non-zero ",
    (
        r"(?:http(?:/[\d.]{1,5})?:? )?(?:error |status )?[45]\d\d:? (?:not found|forbidden|unauthorized|bad request"
        r"|conflict|gone|internal server error|bad gateway|service unavailable|gateway time-?out|too many requests"
        r"|method not allowed)\b"
    ),
    r"connection (?:refused|reset|timed out|aborted|closed by)\b",
)
_REFUSES = re.compile(
    rf"{_MARK}(?:(?:i'm |we're |i am |we are )?sorry,? (?:but )?)?(?:{'|'.join(_REFUSALS)})", re.IGNORECASE
)
_GAVE_UP = re.compile(
    r"(?:[\w-]{1,40} ){0,2}(?:rate limit|quota) (?:was |has been |is )?(?:exceeded|reached)\b"
    rf"|(?!(?:no|none|zero|nobody|if|when|whether|\d+)\b)(?:[\w'-]{{1,40}} ){{0,4}}{_ACTIONS} (?:has |have )?"
    r"(?:timed out\b|failed(?:[.:!,]|\s*\Z| (?:with|because|due|after|on)\b))",
    re.IGNORECASE,
)
_REFUSING = (
    "not", "fail", "invalid", "unknown", "no such", "can", "could", "unable", "denied", "missing", "timed out", "time",
    "error", "exception", "required", "unexpected", "unsupported", "unrecogni", "insufficient", "rejected", "blocked",
    "ran into", "wrong", "bad ", "status", "connection", "exceeded", "reached", "tool", "forbidden", "unauthorized",
    "conflict", "gone", "too many", "unavailable",
)  # fmt: skip
"""One of these stands in every refusal; to look for them is quicker than to try its wordings."""
_NOT_THERE = re.compile(
    r"(?![#/\d*]|\"\"\"|.{0,120}\b(?:if|when|whether|unless|no|raises?|thrown|errors?)\b)[^\n:.]{1,80} "
    r"(?:(?:(?:was |is |were |are )?not found|do(?:es)? not exist)(?:\s*[.!,;:)]|\s*\Z| (?:in|for|on|at|with|under)\b)"
    r"|is not available\s*[.!]?\s*\Z)",
    re.IGNORECASE,
)
_LONGEST_NOT_THERE = 160
_COUNTS = re.compile(rf"[^\n:]{{1,80}}:(?:{EMPTY}|\s*(?i:empty|0+ [a-z]+)\s*\Z)|[^.:!?\n]{{1,80}}\?")
"""A figure or an empty list with its heading, whatever that is called; or a question."""


def complains(line: str) -> bool:
    """Return whether a line is the complaint of a shell, or of a program that calls itself by its name."""
    if _COMPLAINTS.match(line) is not None:
        return True
    program = _PROGRAM.match(line)
    if program is None:
        return False
    if not any(word in line for word in _COMPLAINING):
        return False
    complaint = _COMPLAINT.search(line, program.end() - 1)
    return complaint is not None and complaint.start() <= program.end() + _COMPLAINT_WITHIN


def refuses(line: str) -> bool:
    """Return whether a line, alone, refuses what was asked for, or says that it is not there."""
    lowered = line.lower()
    if not any(word in lowered for word in _REFUSING):
        return False
    if (
        _REFUSES.match(line) is None
        and _GAVE_UP.match(line) is None
        and (len(line) > _LONGEST_NOT_THERE or _NOT_THERE.match(line) is None)
    ):
        return False
    return _COUNTS.match(line) is None
