"""The names of the simulator that the rest of the server uses."""

from postroom.outward.simulator.personas import Reaction, SimulatedRefusal, domain_of, react
from postroom.outward.simulator.sent import Answer, Sent

__all__ = ["Answer", "Reaction", "Sent", "SimulatedRefusal", "domain_of", "react"]
