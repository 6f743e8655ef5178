package sim

import "github.com/mortise-lock/mortise/lockfsm"

// capture is a snapshot of a state machine that is taken in steps, as short as the seed wants them.
type capture struct {
	*lockfsm.Capture
	w *world
}

func (r *ownReplica) capture() capture { return capture{r.glue.Machine().Capture(), r.p.w} }

// Step implements raftlog.Capture.
func (c capture) Step() (done bool) { return c.Capture.Step(1 + c.w.rng.IntN(1+c.w.rng.IntN(100))) }
