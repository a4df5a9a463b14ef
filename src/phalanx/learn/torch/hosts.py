"""A network that shares its weights over hosts: one set of weights plays networks of any size.

Each host is read by the same layers, together with what is about no host; what all hosts say is
pooled (mean and maximum), and every host decides on its verbs in the light of that.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from phalanx.cage2.places import places_of
from phalanx.cage2.rules.scenario import ALL_VERBS, HOST_VERBS, NUM_VERBS, SLEEP
from phalanx.cage2.rules.world import FEATURES, NUM_FEATURES, Worlds, num_hosts_of
from phalanx.errors import ConfigError

IDLE = 2  # Sleep and Monitor


class HostsNetwork(nn.Module):
    """Logits for every action, and values.

    network = HostsNetwork(kind, worlds, (64, 64), truth_size=0, told=0)
    logits, values = network(obs, truth)

    kind: of observations, as rules number them. worlds: of a batch with by_host=True.
    told: numbers after each observation. truth_size: numbers that only the critic sees.
    """

    of_hosts: Tensor
    common: Tensor
    outputs: Tensor

    def __init__(
        self, kind: int, worlds: Worlds, hidden: tuple[int, ...], *, truth_size: int, told: int
    ) -> None:
        super().__init__()
        places, width = places_of(kind, worlds), hidden[0]
        self.hosts = num_hosts_of(worlds)
        seen = places.of_hosts.size + len(places.common)
        common = np.concatenate([places.common, np.arange(seen, seen + told)])
        each, shared = places.of_hosts.shape[1], len(common)
        self.is_there = each - NUM_FEATURES + FEATURES.index("is_there")
        self.per_truth = 3 if truth_size else 0

        # Other networks have others: they are no weights.
        def index(name: str, numbers: npt.NDArray[np.int64]) -> None:
            array = np.ascontiguousarray(numbers, np.int64).reshape(-1)
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

        index("of_hosts", places.of_hosts)
        index("common", common)
        index("outputs", _outputs(worlds, self.hosts))
        self.read_host, self.read_common = nn.Linear(each, width), nn.Linear(shared, width)
        self.deeper = nn.ModuleList(nn.Linear(width, width) for _ in hidden[1:])
        self.context = nn.Linear(2 * width + shared, width)
        self.host_again, self.in_context = nn.Linear(width, width), nn.Linear(width, width)
        self.verbs, self.idle = nn.Linear(width, len(HOST_VERBS)), nn.Linear(width, IDLE)
        self.judge_host = nn.Linear(width + self.per_truth, width)
        self.judge, self.value = nn.Linear(2 * width, width), nn.Linear(width, 1)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                last = layer in (self.verbs, self.idle)
                gain = 0.01 if last else 1.0 if layer is self.value else 2**0.5
                nn.init.orthogonal_(layer.weight, gain)
                nn.init.zeros_(layer.bias)

    def forward(self, obs: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        rows = len(obs)
        each = obs.index_select(1, self.of_hosts).view(rows, self.hosts, -1)
        common = obs.index_select(1, self.common)
        there = each[:, :, self.is_there, None]
        x = torch.tanh(self.read_host(each) + self.read_common(common)[:, None])
        for layer in self.deeper:
            x = torch.tanh(layer(x))
        context = torch.tanh(self.context(torch.cat([_pooled(x, there), common], dim=1)))
        decided = torch.tanh(self.host_again(x) + self.in_context(context)[:, None])
        by_verb = self.verbs(decided).transpose(1, 2).reshape(rows, -1)
        logits = torch.cat([by_verb, self.idle(context)], dim=1).index_select(1, self.outputs)
        return logits, self._values(x, there, context, truth)

    def _values(self, x: Tensor, there: Tensor, context: Tensor, truth: Tensor) -> Tensor:
        if self.per_truth:
            known = truth.view(len(truth), self.per_truth, self.hosts).transpose(1, 2)
            x = torch.cat([x, known], dim=2)
        judged = torch.tanh(self.judge_host(x)) * there
        total = judged.sum(dim=1) / 8  # dangers add up
        return self.value(torch.tanh(self.judge(torch.cat([total, context], dim=1))))[:, 0]


def _pooled(x: Tensor, there: Tensor) -> Tensor:
    """Mean and maximum over the hosts that are there."""
    mean = (x * there).sum(dim=1) / there.sum(dim=1)
    top = (x + 2 * (there - 1)).amax(dim=1)  # beyond what tanh gives
    return torch.cat([mean, top], dim=1)


def _outputs(worlds: Worlds, hosts: int) -> npt.NDArray[np.int64]:
    """[actions] where each action's logit is: by verb and host, then Sleep and Monitor."""
    count = int(worlds["num_actions"][0])
    extra = worlds["verb_of_action"][0, :count].max(initial=0)
    if extra >= NUM_VERBS:
        raise ConfigError(
            f"--network hosts knows the challenge's actions only; leave out {ALL_VERBS[extra]}"
        )
    verbs, of = (worlds[f"{n}_of_action"][0, :count].astype(np.int64) for n in ("verb", "host"))
    return np.where(verbs < SLEEP, verbs * hosts + of, len(HOST_VERBS) * hosts + verbs - SLEEP)
