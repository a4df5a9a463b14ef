"""The network that shares its weights over hosts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from phalanx.cage2.batch import Batch  # noqa: E402
from phalanx.cage2.places import places_of  # noqa: E402
from phalanx.cage2.rules.observation import observation_kind  # noqa: E402
from phalanx.cage2.scenario.several import open_scenarios  # noqa: E402
from phalanx.learn.torch.hosts import HostsNetwork  # noqa: E402

SMALL = "random:seed=5,users=2-5,enterprise=3,op=2-4,networks=20"
LARGE = "random:seed=5,users=9-20,networks=3"


def network(source: str, observation: str = "memory", truth: bool = True) -> HostsNetwork:
    torch.manual_seed(1)
    scenarios = open_scenarios(source)
    size = 3 * scenarios.room if truth else 0
    kind = observation_kind(observation)
    return HostsNetwork(kind, scenarios.worlds(True), (16, 16), truth_size=size, told=0)


@pytest.mark.parametrize("observation", ["history", "memory", "belief"])
def test_networks_of_any_size_have_the_same_weights(observation: str) -> None:
    small, large = (network(source, observation) for source in (SMALL, LARGE))
    shapes = [{k: v.shape for k, v in one.state_dict().items()} for one in (small, large)]
    assert shapes[0] == shapes[1]


def test_hosts_that_change_places_change_actions_and_not_the_value() -> None:
    batch = Batch(10, scenario=SMALL, observation="memory", red_agent="b_line", num_threads=1)
    for _turn in range(6):
        batch.play(np.full(10, 20))
    net = network(SMALL)
    places = places_of(batch.kind, batch.worlds)
    turned = np.random.default_rng(3).permutation(13)
    obs = batch.shown.obs.copy()
    moved = obs.copy()
    moved[:, places.of_hosts] = obs[:, places.of_hosts[turned]]
    truth = np.random.default_rng(4).random((10, 3, 13)).astype(np.float32)
    logits, values = net(torch.from_numpy(obs), torch.from_numpy(truth.reshape(10, -1)))
    there, same = net(
        torch.from_numpy(moved), torch.from_numpy(truth[:, :, turned].reshape(10, -1).copy())
    )
    assert torch.allclose(values, same, atol=1e-5)
    by_host = [one[:, 2:].reshape(10, 11, 13) for one in (logits, there)]
    assert torch.allclose(by_host[0][:, :, turned], by_host[1], atol=1e-5)
    assert torch.allclose(logits[:, :2], there[:, :2], atol=1e-5)
    assert not torch.allclose(logits, there, atol=1e-5)


def test_hosts_that_are_not_there_are_not_looked_at() -> None:
    batch = Batch(10, scenario=SMALL, observation="memory", num_threads=1)
    net, places = network(SMALL, truth=False), places_of(batch.kind, batch.worlds)
    obs = batch.shown.obs.copy()
    i = int(np.argmin([len(batch.scenario_of(i).hosts) for i in range(10)]))
    absent = len(batch.scenario_of(i).hosts)
    assert absent < 13
    changed = obs.copy()
    is_there = places.of_hosts.shape[1] - 30
    changed[i, np.delete(places.of_hosts[12], is_there)] = 0.7
    before, after = (net(torch.from_numpy(one), torch.zeros(10, 0)) for one in (obs, changed))
    assert torch.allclose(before[1], after[1], atol=1e-6)
    assert torch.allclose(
        before[0][:, 2:].reshape(10, 11, 13)[:, :, :absent],
        after[0][:, 2:].reshape(10, 11, 13)[:, :, :absent],
        atol=1e-6,
    )


def test_the_actor_does_not_see_the_truth() -> None:
    batch = Batch(4, scenario=SMALL, observation="memory", num_threads=1)
    net, obs = network(SMALL), torch.from_numpy(batch.shown.obs)
    one, other = (net(obs, torch.full((4, 39), value)) for value in (0.0, 1.0))
    assert torch.equal(one[0], other[0])
    assert not torch.equal(one[1], other[1])
