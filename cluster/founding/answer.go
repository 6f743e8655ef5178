package founding

import (
	"cmp"
	"slices"
)

// A respondent says who this instance is.
type respondent struct {
	*assent
	replica
}

func (r *respondent) answer(q question) InstanceInfo {
	who := InstanceInfo{
		Instance: r.instance, Name: r.name, Addr: r.addr, Phase: r.phase, Leader: r.leader, Group: r.group,
		Settings: r.settings, Rules: r.rules, WallUnixMS: r.wall, Voters: r.voters,
		RefusedYou: slices.Contains(r.refused, q.Group), Life: r.life, Boot: r.boot, Durable: r.durable, Resuming: r.settling,
		At: r.at, Supersedes: r.supersedes, FloorUnixMS: r.floor, Standing: r.standing(),
	}
	if q.Instance == r.instance && r.durable && !r.settling {
		who.AskerLife, who.AskerBoot, who.AskerAddr = r.life, r.boot, r.addr
	} else {
		who.AskerLife, who.AskerBoot, who.AskerAddr = r.newestLife(q.Instance)
	}
	if r.phase == Newborn {
		if r.settings.founds(r.name) {
			_, obstacle := r.obstacle(nil)
			who.Obstacle = cmp.Or(r.culprit(), obstacle)
		}
		who.Supersedes = sorted(r.gaveUp)
	} else {
		who.Settings = r.rulesOf
	}
	return who
}

func (r *respondent) standing() *Standing {
	s := &Standing{Raft: r.runs()}
	for _, v := range r.voters {
		s.Names = append(s.Names, r.nameOf(v.Instance))
	}
	s.Applied, s.Log = r.applied, r.ownLog()
	return s
}
