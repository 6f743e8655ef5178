package barrier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// Node is the part of *mortise.Node that this package uses. It must be safe for concurrent use.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

var (
	// ErrBroken is the error of [Cyclic.Await] for a generation that cannot become complete. The text
	// names the participant that has stopped waiting.
	ErrBroken = errors.New("barrier: the generation is broken")

	// ErrForgotten is the error of [Latch.Wait] when the latch was removed, or its group was founded
	// anew.
	ErrForgotten = errors.New("barrier: the latch was removed, or its group was founded anew")

	// ErrMismatch means that the key has data of another kind, or that another participant uses
	// another number of participants.
	ErrMismatch = errors.New("barrier: the participants do not agree")

	// ErrReplaced means that another call, perhaps in another process, uses the name of this
	// participant.
	ErrReplaced = errors.New("barrier: another call has taken the place of this participant")
)

const (
	maxSize    = 128
	maxName    = 128         // bytes of the name of a participant
	afterwards = time.Second // how long a call tries to withdraw after its context has ended
)

func newPlace(node Node, name, kind string, n int) (place, error) {
	switch {
	case node == nil:
		return place{}, errors.New("barrier: the node is nil")
	case n < 1 || n > maxSize:
		return place{}, fmt.Errorf("barrier: %s %q of %d participants: must be 1 to %d", kind, name, n, maxSize)
	}
	return place{node, name, kind, n}, nil
}

func checkName(participant string) error {
	rule := ""
	switch {
	case participant == "":
		rule = "it is empty"
	case len(participant) > maxName:
		rule = fmt.Sprintf("it has %d bytes, more than %d", len(participant), maxName)
	case !utf8.ValidString(participant):
		rule = "it is not UTF-8"
	default:
		for _, r := range participant {
			if unicode.IsControl(r) {
				rule = "it has a control character"
			}
		}
	}
	if rule != "" {
		return fmt.Errorf("barrier: the name %.64q of a participant: %s", participant, rule)
	}
	return nil
}

// hold acquires the hold that shows the other participants that this one is alive.
func (p *place) hold(ctx context.Context, participant string) (*mortise.Lock, error) {
	if err := checkName(participant); err != nil {
		return nil, err
	}
	return p.node.Acquire(ctx, mortise.Request{
		Key: p.name, Mode: mortise.Shared, Value: participant, Labels: shown.Purpose(shown.Job),
	})
}

// await calls step now, and whenever the key may have changed, until step reports that the wait is
// over.
func (p *place) await(ctx context.Context, step func(ctx context.Context) (over bool, err error)) error {
	over, err := step(ctx)
	if over || err != nil {
		return because(ctx, err)
	}
	changed := false
	for e, err := range p.node.Watch(ctx, p.name, 0) {
		if err != nil {
			return because(ctx, err)
		}
		switch e.Kind {
		case mortise.EventReset:
			changed = true
		case mortise.EventData, mortise.EventFreed, mortise.EventLeft:
			changed = changed || e.Key == p.name
		case mortise.EventCurrent:
			if !changed {
				continue
			}
			changed = false
			if over, err := step(ctx); over || err != nil {
				return because(ctx, err)
			}
		}
	}
	return errors.New("barrier: the watch has ended without an error") // Watch excludes this
}

// because returns err with the cause of the end of ctx, if ctx has ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// withdrawing returns a context for what must still be done after ctx has ended.
func withdrawing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), afterwards)
}
