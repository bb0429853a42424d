"""Every threshold of the verdict, each beside its reason; a rule says `policy.NAME`.

"diagnosis N" is section N of the project's diagnosis notes; "simulated" figures come from
tests/unit/verdict (test_engine, test_selection, test_memory), which keep them honest.
"""

from tui.verdict.policy.causes import *
from tui.verdict.policy.device import *
from tui.verdict.policy.feeding import *
from tui.verdict.policy.idleness import *
from tui.verdict.policy.memory import *
from tui.verdict.policy.notes import *
from tui.verdict.policy.sampled import *
from tui.verdict.policy.stalls import *
from tui.verdict.policy.standing import *
from tui.verdict.policy.windows import *
