"""The material of the bench `context.cases`: kinds of sessions, and what users and agents say in each.

`{n}` is a number, `{word}` a word, `{name}` a person, `{id}` an identifier: each is drawn from the seed of a session,
but within one rule, decision or fact the same mark is the same value.
"""

from __future__ import annotations

from msgspec import Struct


class Choice(Struct, frozen=True):
    """What was chosen for a `subject` and why, and what replaced it later."""

    subject: str
    first: str
    reason: str
    second: str
    second_reason: str


class Fact(Struct, frozen=True):
    """A value of an `owner`, as a sentence says it. The sentence has both."""

    owner: str
    value: str
    sentence: str


class Kind(Struct, frozen=True):
    """A kind of session.

    - `task`: the first message; `requests`, `reports`: what user and agent say without any matter;
    - `tool`, `argument`, `lines`: a tool, what it is called with, and lines of its output;
    - `rules`: what the user requires or forbids; `statements`: the same, said as something that is so;
    - `changes`: a rule, and what the user says later in its place;
    - `choices`, `facts`: decisions and values.
    """

    task: str
    requests: tuple[str, ...]
    reports: tuple[str, ...]
    tool: str
    argument: str
    lines: tuple[str, ...]
    rules: tuple[str, ...]
    statements: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    choices: tuple[Choice, ...]
    facts: tuple[Fact, ...]


WORDS = (
    "ledger", "harbor", "willow", "copper", "lantern", "meadow", "signal", "quarry", "ribbon", "saddle", "timber",
    "velvet", "walnut", "anchor", "bramble", "cinder", "drift", "ember", "fjord", "garnet", "hollow", "indigo",
    "juniper", "kettle", "lagoon", "marble", "nectar", "orchid", "pebble", "quiver",
)  # fmt: skip
NAMES = (
    "Mira Holt", "Jonas Frey", "Aiko Tanaka", "Paul Okafor", "Lena Brandt", "Rui Costa", "Nadia Petrova", "Tom Visser",
    "Sara Lindqvist", "Omar Haddad", "Ines Moreau", "Karl Weber",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "coding": Kind(
        "Port the {word} service to Python 3.13 and keep its tests green.",
        ("Go on with {word}.py.", "What about the {word} module?", "Look at the {word} tests next.", "Continue."),
        ("The {word} module imports cleanly.", "I read {word}.py; nothing unusual there.", "{n} tests pass in {word}."),
        "read_file",
        "src/{word}/{id}.py",
        ("{n}: def {word}_{word}(self, value):", "{n}:     return self._{word}[{n}]", "{n}: class {word}Reader:"),
        (
            "Never edit the generated files under gen/{word}.",
            "No new dependencies without my approval.",
            "Use tabs, not spaces, in {word}.py.",
            "Don't push to main; open a pull request instead.",
            "The {word} table is off limits.",
        ),
        (
            "Every public function needs a docstring.",
            "Commit messages start with the ticket number.",
            "All timestamps in the API are UTC, so keep them that way.",
        ),
        (
            ("Always run the slow suite before you commit.", "You no longer need to run the slow suite."),
            ("Do not touch {word}/legacy.py.", "You may now change {word}/legacy.py as well."),
            ("Lines must stay under 88 characters.", "Correction: lines must stay under {n} characters."),
        ),
        (
            Choice("job queue", "Redis", "it is already deployed", "Postgres", "Redis lost jobs at a restart"),
            Choice("config format", "YAML", "people know it", "TOML", "the parser is in the standard library"),
            Choice("retry policy", "fixed delays", "they are simple", "exponential backoff", "the API throttles us"),
            Choice("test runner", "unittest", "it needs no install", "pytest", "fixtures save half of the code"),
        ),
        (
            Fact("staging database", "port {n}", "The staging database listens on port {n}."),
            Fact("flaky test", "test_{word}_{n}", "The flaky test is test_{word}_{n}."),
            Fact("release branch", "release/{n}", "The release branch is release/{n}."),
            Fact("{word} bug", "{id}", "The {word} bug came in with commit {id}."),
            Fact("entry point", "src/{word}/main.py", "The entry point of the worker is src/{word}/main.py."),
        ),
    ),
    "support": Kind(
        "Work through today's support tickets of the {word} shop.",
        ("Next ticket, please.", "What does {name} want?", "Draft the answer to {name}.", "Continue."),
        ("I answered {name}.", "The ticket of {name} is closed.", "{n} tickets of the {word} shop are left."),
        "search_tickets",
        "customer {name}",
        ("T-{n} | {name} | open | {word} order {id}", "T-{n} | {name} | closed | refund of {n} euros"),
        (
            "Refunds above {n} euros need my approval first.",
            "Never promise a delivery date.",
            "No discounts for resellers.",
            "Keep every reply under {n} words.",
            "You must not mention internal ticket numbers to customers.",
            "Only answer in the thread that the customer opened.",
            "If a customer threatens legal action, hand the ticket to {name}.",
        ),
        ("Address customers by their last name.",),
        (
            ("Never replace the {word} kettle.", "You may now offer replacements for the {word} kettle."),
            ("Always copy {name} on complaints.", "Stop copying {name} on complaints."),
            ("Vouchers may be at most 10 euros.", "Vouchers may now be up to {n} euros."),
        ),
        (
            Choice("lost parcels", "a refund", "customers ask for money", "a new parcel", "refunds cost twice as much"),
            Choice("tone of answers", "formal", "the brand book says so", "friendly", "complaints fell in the trial"),
            Choice("priority queue", "by age", "it is fair", "by order value", "large customers left"),
        ),
        (
            Fact("{name}", "order {id}", "The parcel of {name} is order {id}."),
            Fact("warehouse {word}", "closes at {n}:15", "The warehouse {word} closes at {n}:15."),
            Fact("voucher code", "{word}-{n}", "The voucher code for late parcels is {word}-{n}."),
            Fact("escalation line", "extension {n}", "The escalation line has extension {n}."),
            Fact("account of {name}", "C-{n}", "The account of {name} is C-{n}."),
        ),
    ),
    "data": Kind(
        "Find out why revenue of the {word} segment fell in the third quarter.",
        ("Break it down by {word}.", "Plot the {word} column.", "Any outliers in {word}?", "Continue."),
        ("The {word} column has {n} nulls.", "The trend in {word} is flat.", "I joined {word} and {word}."),
        "run_query",
        "select * from {word}_{word} limit {n}",
        ("{id} | {word} | {n} | {n}.5", "{id} | {word} | {n} | null"),
        (
            "Never write to the warehouse; read-only queries.",
            "Exclude test accounts from every figure.",
            "Don't use the {word}_old table.",
            "Customer names must not appear in charts.",
            "Each query has to stay below {n} GB scanned.",
            "Ask me before you drop any outlier.",
        ),
        (
            "Report revenue in euros, without VAT.",
            "Round percentages to one decimal.",
        ),
        (
            ("Only use data from {n} on.", "Scratch that about the start of the data: use all years."),
            ("Ignore the {word} region.", "Include the {word} region again from now on."),
            ("Use medians, never means.", "Means are fine again, no need to use medians."),
        ),
        (
            Choice("churn window", "30 days", "the board reports it so", "90 days", "most customers buy quarterly"),
            Choice("join key", "email", "it is in both tables", "customer_id", "emails change"),
            Choice("missing prices", "zero", "it is the default", "the last known price", "zero distorted the sums"),
        ),
        (
            Fact("revenue table", "dw.{word}_{n}", "The revenue table is dw.{word}_{n}."),
            Fact("drop in {word}", "{n}.4 %", "The drop in {word} is {n}.4 %."),
            Fact("broken import", "job {id}", "The broken import is job {id}."),
            Fact("largest customer", "{name}", "The largest customer is {name}."),
            Fact("dashboard", "/d/{id}", "The dashboard lives at /d/{id}."),
        ),
    ),
    "ops": Kind(
        "Move the {word} cluster to the new data centre without downtime.",
        ("Check node {n}.", "How is the {word} pool?", "Drain the next {word} node.", "Continue."),
        ("Node {n} is drained.", "The {word} pool is healthy.", "Replication of {word} lags {n} ms."),
        "shell",
        "kubectl get pods -n {word} {id}",
        ("{word}-{id}   1/1   Running   {n}m", "{word}-{id}   0/1   Pending   {n}s"),
        (
            "No changes in production between 8 and 18 o'clock.",
            "Never restart more than one node at a time.",
            "Secrets stay in the vault; do not print them.",
            "Anything that costs over {n} dollars needs my OK.",
            "Leave the {word} load balancer alone.",
            "Tell {name} before you fail over.",
            "Don't scale the {word} pool below {n} nodes.",
        ),
        ("Take a snapshot before each migration step.",),
        (
            ("Do not touch node {word}-7 until I say so.", "The audit is over: you may touch node {word}-7 again."),
            ("Use only the blue subnet.", "Change of plan: use only the green subnet."),
            ("Always page {name} for warnings.", "Don't page {name} for warnings anymore, only for outages."),
        ),
        (
            Choice("cutover", "DNS switch", "it needs no new parts", "load balancer weights", "DNS caches too long"),
            Choice("backup tool", "restic", "we know it", "pgbackrest", "restic cannot restore to a point in time"),
            Choice("node size", "8 cores", "it fits the quota", "16 cores", "the pods were throttled"),
        ),
        (
            Fact("primary database", "10.0.{n}.12", "The primary database has the address 10.0.{n}.12."),
            Fact("rollback tag", "v{n}.2", "The rollback tag is v{n}.2."),
            Fact("maintenance window", "{n}:30 UTC", "The maintenance window opens at {n}:30 UTC."),
            Fact("change request", "CHG-{n}", "The change request is CHG-{n}."),
            Fact("on call", "{name}", "On call this week is {name}."),
        ),
    ),
    "writing": Kind(
        "Edit the novel 'The {word} Road' chapter by chapter.",
        ("Next chapter.", "Tighten the {word} scene.", "What do you think of the {word} passage?", "Continue."),
        ("The {word} scene reads better now.", "Chapter {n} is done.", "I cut {n} words from the {word} passage."),
        "open_chapter",
        "chapter {n} of {word}",
        ("The {word} lay still, and {name} said nothing of the {word}.", "{name} walked past the {word} at dusk."),
        (
            "Use British spelling throughout.",
            "Never change a line of dialogue.",
            "No exclamation marks.",
            "Keep each chapter under {n} words.",
            "The narrator must not know what {name} thinks.",
            "Please don't rename any character.",
            "Avoid adverbs in the {word} scenes.",
        ),
        ("Chapters end without a cliffhanger.",),
        (
            ("Write in the past tense only.", "Forget the past tense: from now on, present tense."),
            ("Do not mention the war before chapter {n}.", "You can mention the war wherever you like now."),
            ("Always call her the widow.", "Don't call her the widow anymore; use her name."),
        ),
        (
            Choice("narrator", "first person", "it is closer", "third person", "the letters need a witness"),
            Choice("ending", "the open ending", "readers liked it", "the reunion", "the editor wants hope"),
            Choice("title", "The {word} Road", "it is the working title", "North of {word}", "the first is taken"),
        ),
        (
            Fact("{name}", "born in 18{n}", "{name} was born in 18{n}."),
            Fact("house on the hill", "{n} Mill Lane", "The house on the hill is {n} Mill Lane."),
            Fact("manuscript", "draft-{id}.docx", "The manuscript is draft-{id}.docx."),
            Fact("deadline", "{n} March", "The deadline of the publisher is {n} March."),
            Fact("sister", "{name}", "The sister of the widow is {name}."),
        ),
    ),
    "research": Kind(
        "Write a review of papers on {word} membranes.",
        ("Read the next paper.", "What does {name} find?", "Compare {word} with {word}.", "Continue."),
        ("{name} reports {n} samples.", "The {word} paper has no control group.", "I noted the {word} method."),
        "fetch_paper",
        "doi 10.{n}/{id}",
        ("{name} et al. measured {word} at {n} K ({id}).", "Table {n}: {word}, {word}, {n}.3"),
        (
            "Cite only peer-reviewed work.",
            "Never quote more than one sentence of a paper.",
            "Preprints don't count.",
            "You should not contact any author.",
            "Papers before {n} are out of scope.",
            "Make sure that {name} is cited first.",
        ),
        (
            "Units are SI units everywhere.",
            "Every claim needs a page number.",
        ),
        (
            ("Leave out animal studies.", "Animal studies are allowed after all; include them."),
            ("At most {n} papers in total.", "Correction: as many papers as you need, no limit."),
            ("Always give the sample size.", "You don't have to give the sample size any longer."),
        ),
        (
            Choice("structure", "by year", "it is usual", "by method", "years mix the methods"),
            Choice("effect measure", "odds ratio", "most papers have it", "risk difference", "readers misread odds"),
            Choice("reference style", "APA", "the template has it", "Vancouver", "the journal asks for it"),
        ),
        (
            Fact("largest trial", "{n} patients", "The largest trial has {n} patients."),
            Fact("{name}", "doi 10.{n}", "The paper of {name} is doi 10.{n}."),
            Fact("{word} membrane", "{n} nm", "The {word} membrane is {n} nm thick."),
            Fact("retracted paper", "{id}", "The retracted paper is {id}."),
            Fact("word limit", "{n},000 words", "The word limit of the journal is {n},000 words."),
        ),
    ),
    "booking": Kind(
        "Plan the team's trip to the {word} conference.",
        ("Look for hotels near {word}.", "And the flight of {name}?", "What about the {word} dinner?", "Continue."),
        ("The hotel near {word} has rooms.", "{name} has a seat.", "I compared {n} flights."),
        "search_flights",
        "to {word} on day {n}",
        ("flight {id} | {word} | {n} euros | {name}", "hotel {word} | room {n} | {n} euros"),
        (
            "No flights before 7 in the morning.",
            "Never book anything that cannot be cancelled.",
            "Hotels cost at most {n} euros a night.",
            "Always book aisle seats for {name}.",
            "Don't share our passport numbers with hotels.",
            "Whenever a price rises, ask me first.",
        ),
        (
            "{name} eats no fish.",
            "Trains, not planes, for anything under four hours.",
        ),
        (
            ("Book only with {word} Air.", "You can book with any airline now."),
            ("{name} must fly a day ahead.", "{name} no longer has to fly a day ahead."),
            ("Never book shared rooms.", "Sharing rooms is okay now to save money."),
        ),
        (
            Choice("hotel", "the Harbor Inn", "it is close", "the Park Hotel", "the Harbor Inn has no lift"),
            Choice("airport", "Linate", "it is near", "Malpensa", "flights there are direct"),
            Choice("dinner", "Thursday", "all are there", "Friday", "the talk on Thursday ends late"),
        ),
        (
            Fact("{name}", "flight {id}", "{name} is on flight {id}."),
            Fact("group booking", "{word}{n}", "The group booking has the code {word}{n}."),
            Fact("conference desk", "room {n}", "The conference desk is in room {n}."),
            Fact("budget for meals", "{n} euros", "The budget for meals is {n} euros."),
            Fact("visa of {name}", "V-{id}", "The visa of {name} is V-{id}."),
        ),
    ),
    "finance": Kind(
        "Close the books of {word} GmbH for the month.",
        ("Check account {n}.", "Match the {word} invoices.", "What did {name} bill?", "Continue."),
        ("Account {n} is balanced.", "The {word} invoices match.", "{name} billed {n} hours."),
        "list_entries",
        "account {n} of {word}",
        ("{id} | {n} | {word} | debit {n}.00", "{id} | {n} | {name} | credit {n}.50"),
        (
            "Never post to a closed period.",
            "Do not round exchange rates.",
            "Salaries are confidential: no names in reports.",
            "You must ask {name} before you write anything off.",
            "Nothing is paid to {word} Ltd until I say so.",
        ),
        (
            "Payments over {n} euros need two signatures.",
            "Entries without a receipt go to account 1{n}.",
            "Every correction gets a note with the reason.",
        ),
        (
            ("Always book travel on account 4{n}.", "From now on, book travel on account 5{n}."),
            ("Never prepay suppliers.", "It's fine to prepay suppliers again."),
            ("Only {name} may release payments.", "You may release payments yourself now."),
        ),
        (
            Choice("depreciation", "linear", "the tax office likes it", "declining", "the machines age fast"),
            Choice("accruals", "monthly", "it is exact", "quarterly", "the auditor asks for it"),
            Choice("bad debt", "write it off", "it is small", "a reserve", "the customer pays in part"),
        ),
        (
            Fact("opening balance", "{n},310.22", "The opening balance is {n},310.22."),
            Fact("disputed invoice", "INV-{n}", "The disputed invoice is INV-{n}."),
            Fact("IBAN of {name}", "DE{n}", "The IBAN of {name} ends in DE{n}."),
            Fact("tax advisor", "{name}", "The tax advisor is {name}."),
            Fact("cost centre {word}", "KST {n}", "The cost centre {word} has the number KST {n}."),
        ),
    ),
}
