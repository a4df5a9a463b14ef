"""Which numbers of an observation are about which host."""

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.places import places_of
from phalanx.cage2.rules.observation import observation_kind
from phalanx.cage2.rules.world import NUM_FEATURES
from phalanx.errors import ConfigError

SMALL = "random:seed=5,users=2-5,enterprise=3,op=2-4,networks=20"


@pytest.mark.parametrize("observation", ["history", "memory", "belief", "truth"])
def test_all_numbers_have_one_place_and_hosts_have_their_own(observation: str) -> None:
    batch = Batch(
        20, scenario=SMALL, red_agent="meander", observation=observation, seed=1, num_threads=1
    )
    places = places_of(observation_kind(observation), batch.worlds)
    columns = np.concatenate([places.of_hosts.ravel(), places.common])
    assert sorted(columns) == list(range(batch.shown.obs.shape[1]))
    rng = np.random.default_rng(0)
    for _turn in range(30):
        masks = batch.action_masks()
        batch.play(np.array([rng.choice(np.flatnonzero(row)) for row in masks]))
        shown = batch.shown.obs[:, places.of_hosts]
        seen = (batch.nets["seen"][:, :1] >> np.arange(52)) & 1
        assert np.array_equal(shown[:, :, :4], seen.reshape(20, 13, 4))
        assert np.array_equal(shown[:, :, -NUM_FEATURES:], batch.host_features)
        assert batch.minds.memories is not None
        decoys = (batch.minds.memories["decoys"][:, :, None] >> np.arange(8)) & 1
        first = 4 if observation in ("belief", "truth") else 8
        assert np.array_equal(shown[:, :, first : first + 8], decoys)


def test_hosts_have_places_of_their_own_only_where_they_are_shown_one_by_one() -> None:
    batch = Batch(1, observation="memory", num_threads=1)
    with pytest.raises(ConfigError, match="by_host=True"):
        places_of(batch.kind, batch.worlds)
