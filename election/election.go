package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/purpose"
)

// Node is what an Election needs of a *mortise.Node, which is one. A wrapper that measures or
// traces is another. It must be safe for concurrent use.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Options say how Run behaves. The zero value is good for most. It is copied.
type Options struct {
	// Backoff is how long Run pauses after its function has failed, or the node was overloaded,
	// before it takes part again. Others can lead meanwhile. It doubles with every failure in a
	// row, up to MaxBackoff; a leadership of MaxBackoff or longer begins a new row. 0 or less: 1 s.
	Backoff time.Duration

	// MaxBackoff bounds the pause. 0 or less: 1 min, or Backoff if that is more.
	MaxBackoff time.Duration

	// Report is told, in the goroutine of Run, what does not end Run: an error of its function; why
	// a leadership was over before the function returned (mortise.ErrLost, say), wrapped together
	// with the function's own error if it had one; or, with token 0, why it could not campaign for
	// now. Run has resigned by then, so Report delays no other instance. Nil: nobody is told.
	Report func(token mortise.Token, err error)
}

func (o Options) withDefaults() Options {
	if o.Backoff <= 0 {
		o.Backoff = time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = time.Minute
	}
	o.MaxBackoff = max(o.MaxBackoff, o.Backoff)
	if o.Report == nil {
		o.Report = func(mortise.Token, error) {}
	}
	return o
}

// ErrLeading is the error of a Campaign or Run whose context comes from a leadership of the same
// election through the same node: the lock would be entered again, and one instance would lead
// twice.
var ErrLeading = errors.New("election: the context stands under a leadership of this election")

// Election is one election, as one instance sees it. Make one with New; it needs no closing. It is
// safe for concurrent use.
type Election struct {
	name    string
	options Options
	acquire func(context.Context, mortise.Request) (grant, error)
	peek    func(context.Context, string) (mortise.KeyInfo, error)
	watch   func(context.Context, string, uint64) iter.Seq2[mortise.Event, error]
}

// New returns the election of a name: all who give the same name, on the nodes of one group, elect
// one leader. It sends nothing; a name that is no key shows in the first campaign, as
// mortise.ErrBadKey. The node must not be nil.
func New(node Node, name string, options Options) *Election {
	return &Election{
		name: name, options: options.withDefaults(), peek: node.Peek, watch: node.Watch,
		acquire: func(ctx context.Context, r mortise.Request) (grant, error) {
			lock, err := node.Acquire(ctx, r)
			if err != nil {
				return nil, err // and no lock that is a nil in a grant that is not
			}
			return lock, nil
		},
	}
}

// request asks for the leadership. The label says that it is held for long by design; a value for
// which it leaves no room goes without.
func request(name, value string) mortise.Request {
	r := mortise.Request{Key: name, Value: value}
	if len(value) <= labelledValue {
		r.Labels = purpose.Of(purpose.Election)
	}
	return r
}

// labelledValue is how long a value may be beside the label: both travel as JSON, in which a value
// takes four thirds of its bytes.
const labelledValue = 700

// Campaign waits its turn and returns the leadership. Value is what others see of the leader, its
// address say: at most 1,024 bytes. ctx bounds only the wait. After an error the caller does not
// lead, now or later; the errors are those of mortise.Node.Acquire, and ErrLeading. Whoever has a
// Leadership must resign: it lasts as long as the node otherwise.
func (e *Election) Campaign(ctx context.Context, value string) (*Leadership, error) {
	g, err := e.acquire(ctx, request(e.name, value))
	if entered := (*mortise.EnteredError)(nil); errors.As(err, &entered) && stands(ctx, entered.Token) {
		return nil, ErrLeading // it would show another value
	}
	if err != nil {
		return nil, err
	}
	if stands(ctx, g.Token()) {
		_ = g.Unlock(ctx) // another handle of the same hold: this leaves the first one alone, and at once
		return nil, ErrLeading
	}
	return &Leadership{grant: g}, nil
}

// Leader is who leads, and since when. The zero Leader, with Token 0, means that nobody does.
type Leader struct {
	Name  string        // of the instance: mortise.Config.Name
	Value string        // as it was given to Campaign or Run
	Token mortise.Token // of the leadership: of two Leaders the one with the higher token is the later one
	Since time.Time     // when it began, by the wall clock of the group's leader: for people, compare nothing with it
}

// Leader returns who leads, or the zero Leader if nobody does. The answer is linearizable: it was
// true at a moment between the call and its return. Without a majority it waits for one until ctx
// ends; the errors are those of mortise.Node.Peek.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	info, err := e.peek(ctx, e.name)
	// in the grace there is a queue, and nobody leads
	if err != nil || len(info.Queue) == 0 || info.Queue[0].Token == 0 {
		return Leader{}, err
	}
	first := info.Queue[0]
	return Leader{Name: first.Holder, Value: first.Value, Token: first.Token, Since: first.Since}, nil
}
