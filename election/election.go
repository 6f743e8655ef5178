package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/purpose"
)

// Node is the part of *mortise.Node that an Election uses, for wrappers. It must be safe for
// concurrent use.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Options configure Run. The zero value suits most services. It is copied.
type Options struct {
	// Backoff is how long Run pauses, after its function failed or the node was overloaded, before it
	// campaigns again. It doubles with every failure in a row, up to MaxBackoff; a leadership of
	// MaxBackoff or longer starts a new row. Zero or less means 1 s.
	Backoff time.Duration

	// MaxBackoff bounds the pause. Zero or less means 1 min, or Backoff if that is more.
	MaxBackoff time.Duration

	// Report is called on the goroutine of Run with each error that does not end Run: an error of its
	// function; or the reason why a leadership was over before the function returned, such as
	// mortise.ErrLost, wrapped together with the function's own error; or, with token 0, the reason
	// why it could not campaign. Run has already resigned, so Report delays no other instance. Nil
	// means that these errors are dropped.
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
var ErrLeading = errors.New("election: the context already belongs to a leadership of this election: use another " +
	"context")

// Election is one election, as one instance sees it. New creates it; it needs no Close. It is safe
// for concurrent use.
type Election struct {
	name    string
	options Options
	acquire func(context.Context, mortise.Request) (grant, error)
	peek    func(context.Context, string) (mortise.KeyInfo, error)
	watch   func(context.Context, string, uint64) iter.Seq2[mortise.Event, error]
}

// New returns the election of a name. All instances that use it on nodes of one group elect one
// leader. New sends nothing; an invalid name fails in the first campaign, with mortise.ErrBadKey.
// The node must not be nil.
func New(node Node, name string, options Options) *Election {
	return &Election{
		name: name, options: options.withDefaults(), peek: node.Peek, watch: node.Watch,
		acquire: func(ctx context.Context, r mortise.Request) (grant, error) {
			lock, err := node.Acquire(ctx, r)
			if err != nil {
				return nil, err // a nil *Lock would be a grant that is not nil
			}
			return lock, nil
		},
	}
}

// request asks for the leadership. The label marks a hold that is long by design; a value that
// leaves no room for it is sent alone.
func request(name, value string) mortise.Request {
	r := mortise.Request{Key: name, Value: value}
	if len(value) <= labelledValue {
		r.Labels = purpose.Of(purpose.Election)
	}
	return r
}

// labelledValue is the longest value that fits beside the label. Both travel as JSON, where a value
// takes four thirds of its bytes.
const labelledValue = 700

// Campaign waits its turn and returns the leadership. Other instances see value, for example the
// leader's address; it has at most 1,024 bytes. ctx bounds only the wait. After an error the caller
// does not lead, now or later. The errors are those of mortise.Node.Acquire, and ErrLeading. The
// caller must resign the Leadership; otherwise it lasts as long as the node.
func (e *Election) Campaign(ctx context.Context, value string) (*Leadership, error) {
	g, err := e.acquire(ctx, request(e.name, value))
	if entered := (*mortise.EnteredError)(nil); errors.As(err, &entered) && stands(ctx, entered.Token) {
		return nil, ErrLeading // the lock would be entered with another value
	}
	if err != nil {
		return nil, err
	}
	if stands(ctx, g.Token()) {
		_ = g.Unlock(ctx) // unlocks only the new handle of the same hold, without a wait
		return nil, ErrLeading
	}
	return &Leadership{grant: g}, nil
}

// Leader is the instance that leads. The zero Leader, with Token 0, means none.
type Leader struct {
	Name  string        // of the instance: mortise.Config.Name
	Value string        // as given to Campaign or Run
	Token mortise.Token // of the leadership: a later Leader has a higher token
	Since time.Time     // when it began, by the wall clock of the group's leader; for display, not for comparison
}

// Leader returns the present leader, or the zero Leader if there is none. The answer is
// linearizable: it was true at a moment between the call and its return. Without a majority it
// waits for one until ctx ends. The errors are those of mortise.Node.Peek.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	info, err := e.peek(ctx, e.name)
	// In the grace there is a queue but no leader.
	if err != nil || len(info.Queue) == 0 || info.Queue[0].Token == 0 {
		return Leader{}, err
	}
	first := info.Queue[0]
	return Leader{Name: first.Holder, Value: first.Value, Token: first.Token, Since: first.Since}, nil
}
