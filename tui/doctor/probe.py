"""The probe in the training process, its socket, and that both sides speak the same version."""

from probe.wire.messages import SCHEMA
from tui.doctor.check import Check
from tui.doctor.facts import Facts
from tui.doctor.missing import missing_check, missing_of, unread_check
from tui.snapshot import Snapshot
from tui.wording.numbers import count, duration

LINES = "start it with: gpuwatch run train.py, or with import probe; probe.install() at its top"


def probe(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Steps and phases."""
    target = facts.target if facts else None
    if snapshot is not None and snapshot.hello is not None:
        if (fault := missing_of(snapshot, "probe")) is not None:
            return missing_check("probe", fault, "restart the run to watch it again")
        hello = snapshot.hello
        steps = f", {count(snapshot.steps.total)} steps seen" if snapshot.steps else ""
        said = f"steps and phases from within {snapshot.script} (probe {hello.probe}){steps}"
        return Check("probe", "ok", said)
    if (without := missing_of(snapshot, "probe")) is not None:
        return missing_check("probe", without, LINES)
    if target is not None and not target.probe:
        return Check("probe", "missing", target.fault or "no probe in it", target.fix or LINES)
    if target is None and snapshot is None:
        return Check("probe", "unknown", "no process was given", "gpuwatch doctor PID; gpuwatch ls")
    return Check("probe", "unknown", "has not been heard of yet")


def socket(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """How the steps get here."""
    if facts is not None and facts.socket:
        fix = "remove that directory; the probe makes it anew within seconds"
        return Check("socket", "missing", facts.socket, fix)
    said = missing_of(snapshot, "feed")
    if said is not None:
        return missing_check("socket", said)
    if snapshot is None or snapshot.status.freshness_s is None:
        return Check("socket", "unknown", "nothing has been received yet")
    status = snapshot.status
    if status.state == "silent":
        heard = duration(status.freshness_s or 0.0)
        return Check("socket", "partly", f"no message for {heard}: the process is held up")
    if status.lost_messages:
        lost = f"{count(status.lost_messages)} messages were lost: this monitor was too slow"
        return Check("socket", "partly", lost, "give it a core of its own")
    if status.refused_requests:
        strange = f"messages arrive; {count(status.refused_requests)} requests were none it knows"
        return Check("socket", "partly", strange, "the same gpuwatch-torch for all who watch it")
    return Check("socket", "ok", "messages arrive, none was lost")


def versions(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Both sides, and what they stand on."""
    told = "" if facts is None else ", ".join(f"{name} {said}" for name, said in facts.versions)
    spoken = facts.target.schema if facts and facts.target else None
    if snapshot is not None and snapshot.hello is not None:
        spoken = snapshot.hello.schema
    if spoken is not None and spoken != SCHEMA:
        said = f"the probe speaks version {spoken}, this gpuwatch {SCHEMA}"
        return Check(
            "versions", "partly", said, "pip install the same gpuwatch-torch on both sides"
        )
    return Check("versions", "ok", told) if told else unread_check("versions", snapshot)
