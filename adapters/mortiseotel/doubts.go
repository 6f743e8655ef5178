package mortiseotel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

// Values of the label state of table.Doubts, besides the outcomes of Hooks.InDoubt.
const (
	doubtLost     = "lost"
	doubtUnlocked = "unlocked"
)

// doubts contains the locks that are in doubt, so that the end of a doubt can be counted. It
// remembers as many locks as holds does.
type doubts struct {
	mu     sync.Mutex // guards tokens
	tokens map[mortise.Token]bool
}

func (d *doubts) begin(token mortise.Token) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tokens == nil {
		d.tokens = map[mortise.Token]bool{}
	}
	if len(d.tokens) < maxHolds {
		d.tokens[token] = true
	}
}

// end reports whether the lock was in doubt.
func (d *doubts) end(token mortise.Token) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.tokens[token]
	delete(d.tokens, token)
	return was
}

func (t *Telemetry) inDoubt(e mortise.LockEvent) {
	if e.Outcome == mortise.OutcomeInDoubt {
		t.doubts.begin(e.Token)
	} else {
		t.doubts.end(e.Token)
	}
	t.countDoubt(e.Key, string(e.Outcome))
	if h, ok := e.Tag.(*hold); ok {
		h.span.AddEvent("mortise." + string(e.Outcome))
	}
}

// endDoubt counts the end of a doubt with the end of its lock.
func (t *Telemetry) endDoubt(e mortise.LockEvent, state string) {
	if t.doubts.end(e.Token) {
		t.countDoubt(e.Key, state)
	}
}

func (t *Telemetry) countDoubt(key, state string) {
	if t.meter.made {
		t.meter.add(table.Doubts, 1, append([]attribute.KeyValue{attribute.String("state", state)}, t.class(key)...)...)
	}
}
