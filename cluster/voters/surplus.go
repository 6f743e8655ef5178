package voters

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Surplus describes that more instances run than Settings.Replicas allows. During a cut of the
// network, instances on both sides can then believe that all instances are on their side.
type Surplus struct {
	// Running counts the instances that have a session and a stream with the leader, and do not
	// leave.
	Running  int
	Replicas int
	// Names are the first names of these instances, in ascending order, at most maxNamed.
	Names []string
	// For is how long this leader has seen the surplus, which may have begun earlier.
	For time.Duration
}

// maxReplicas is the limit of Config.Replicas.
const maxReplicas = 16

// String returns the problem in one sentence, without the time.
func (s Surplus) String() string {
	names := ""
	if len(s.Names) > 0 {
		names = " (" + strings.Join(s.Names, ", ")
		if more := s.Running - len(s.Names); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		names += ")"
	}
	return fmt.Sprintf("%d instances run%s, but Replicas says %d: in a cut of the network a second group can be "+
		"founded, and both groups grant the same locks", s.Running, names, s.Replicas)
}

// Next returns the steps that end the surplus.
func (s Surplus) Next() string {
	if s.Running > maxReplicas {
		return fmt.Sprintf("scale back to %d, or name the Founders instead of Replicas, which is at most %d",
			s.Replicas, maxReplicas)
	}
	return fmt.Sprintf("set Replicas to %d on all instances and roll that out, or scale back to %d", s.Running, s.Replicas)
}

// surplusAfter is longer than the stream with a machine that has lost its power stays open (three
// keepalives of 5 s). A successor of that machine's instance is therefore no surplus.
const surplusAfter = 20 * time.Second

// crowd remembers since when more instances run than Replicas allows.
type crowd struct {
	found Surplus
	since time.Duration
}

func (c *crowd) look(now time.Duration, f Facts) {
	before := c.found
	c.found = Surplus{}
	if f.Settings.Replicas <= 0 {
		return
	}
	if n, names := present(f); n > f.Settings.Replicas {
		c.found = Surplus{Running: n, Replicas: f.Settings.Replicas, Names: names}
		if before.Running == 0 {
			c.since = now
		}
	}
}

func (c *crowd) surplus(now time.Duration) *Surplus {
	if c.found.Running == 0 || now-c.since < surplusAfter {
		return nil
	}
	found := c.found
	found.For = now - c.since
	return &found
}

// present counts the instances that run now. An ended incarnation has no stream, although its
// session remains until it expires.
func present(f Facts) (n int, names []string) {
	seen := map[nodeid.ID]bool{}
	for r := range f.All() {
		if !r.Session || !r.Reachable || r.Leaving || seen[r.Instance] {
			continue
		}
		seen[r.Instance] = true
		if r.Name != "" {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return len(seen), names[:min(len(names), maxNamed)]
}
