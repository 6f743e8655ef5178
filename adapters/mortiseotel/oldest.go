package mortiseotel

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// running contains the holds that have not ended, except those that are long by design. So an alert
// can see a hold that never ends, which no histogram of ended holds shows. It remembers as many
// holds as holds does.
type running struct {
	mu      sync.Mutex // guards the fields below
	holds   map[mortise.Token]begun
	classes map[string]bool // a class of any hold so far; the caller keeps them few
}

type begun struct {
	class string
	at    time.Time
}

func (r *running) begin(token mortise.Token, class string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == nil {
		r.holds, r.classes = map[mortise.Token]begun{}, map[string]bool{}
	}
	r.classes[class] = true
	if len(r.holds) < maxHolds {
		r.holds[token] = begun{class, at}
	}
}

func (r *running) end(token mortise.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holds, token)
}

// oldest returns the age of the oldest hold of each class, in seconds. It is 0 for a class without
// a hold.
func (r *running) oldest(now time.Time) map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	ages := map[string]float64{}
	for class := range r.classes {
		ages[class] = 0
	}
	for _, h := range r.holds {
		ages[h.class] = max(ages[h.class], now.Sub(h.at).Seconds())
	}
	return ages
}
