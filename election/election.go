package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/internal/shown"
)

// Node is the part of *mortise.Node that an Election uses. It must be safe for concurrent use.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Options configure Run. New copies the Options.
type Options struct {
	// Backoff is the pause of Run after its function failed or the node was overloaded. The pause
	// doubles with every consecutive failure, up to MaxBackoff. After a leadership of MaxBackoff or
	// longer, the next pause is Backoff. Zero or less means one second.
	Backoff time.Duration

	// MaxBackoff limits the pause. Zero or less means 1 min, or Backoff if that is longer.
	MaxBackoff time.Duration

	// Report is called on the goroutine of Run, after Run has resigned, with each error that does not
	// end Run. If the function failed, this is its error. If the leadership ended before the function
	// returned, this is the reason, such as mortise.ErrLost, wrapped together with the function's own
	// error. If a campaign failed, this is the reason, and token is 0. If Report is nil, these errors
	// are dropped.
	Report func(token mortise.Token, err error)

	// JeopardyGrace is mortise.Request.JeopardyGrace of each campaign. With it, a leadership that
	// was not renewed in time is in doubt before it is lost: its contexts end, Err returns
	// mortise.ErrInJeopardy, and the instance must not act as the leader. When the group confirms
	// the leadership, Run calls its function again, with the same Leadership and token. Zero means
	// none.
	JeopardyGrace time.Duration

	// MaxIdle is mortise.Request.MaxIdle of each campaign: a leader that has not called
	// [Leadership.Beat], or mortise.Beat with a context of the leadership, for that time is followed
	// by another instance at most a quarter of that time later. Zero means none.
	MaxIdle time.Duration
}

func (o Options) run() hold.Options {
	return hold.Options{Backoff: o.Backoff, MaxBackoff: o.MaxBackoff, Report: o.Report}.WithDefaults()
}

// ErrLeading is the error of a Campaign or Run whose context comes from a leadership of the same
// election through the same node.
var ErrLeading = errors.New("election: the context already belongs to a leadership of this election: use another " +
	"context")

// Election is the access of one instance to an election. It needs no Close.
type Election struct {
	name    string
	options Options
	acquire func(context.Context, mortise.Request) (grant, error)
	peek    func(context.Context, string) (mortise.KeyInfo, error)
	watch   func(context.Context, string, uint64) iter.Seq2[mortise.Event, error]
}

// New returns the election of a name. All instances that use this name on nodes of one group elect
// one leader. New sends nothing. If the name is invalid, the first campaign fails with
// mortise.ErrBadKey. The node must not be nil.
func New(node Node, name string, options Options) *Election {
	return &Election{
		name: name, options: options, peek: node.Peek, watch: node.Watch,
		acquire: func(ctx context.Context, r mortise.Request) (grant, error) {
			lock, err := node.Acquire(ctx, r)
			if err != nil {
				return nil, err // return a nil grant, not a grant that contains a nil *Lock
			}
			return lock, nil
		},
	}
}

// request returns the request for the lock of the election. The request has a label if the value
// leaves room for it.
func (o *Options) request(name, value string) mortise.Request {
	r := mortise.Request{Key: name, Value: value, JeopardyGrace: o.JeopardyGrace, MaxIdle: o.MaxIdle}
	if len(value) <= labelledValue {
		r.Labels = shown.Purpose(shown.Election)
	}
	return r
}

// labelledValue is the length of the longest value in a request that also has the label of an
// election. JSON encodes a value in four thirds of its length.
const labelledValue = 700

// Campaign waits until this candidate leads, and returns the leadership. Other instances can read
// value, at most 1,024 bytes, for example the address of the leader. ctx limits only the wait.
// After an error, the caller does not lead, and this campaign has ended. The errors are those of
// mortise.Node.Acquire, and ErrLeading. The caller must resign the Leadership; otherwise it lasts
// as long as the node.
func (e *Election) Campaign(ctx context.Context, value string) (*Leadership, error) {
	g, err := e.acquire(ctx, e.options.request(e.name, value))
	if entered := (*mortise.EnteredError)(nil); errors.As(err, &entered) && leads(ctx, e.name) {
		return nil, ErrLeading // the re-entered lock would keep the value of the outer leadership
	}
	if err != nil {
		return nil, err
	}
	if stands(ctx, g.Token()) {
		_ = g.Unlock(ctx) // releases only this handle of the outer hold, and does not wait
		return nil, ErrLeading
	}
	return &Leadership{grant: g, name: e.name}, nil
}

// Leader describes the instance that leads. The zero Leader, with Token 0, means that none leads.
type Leader struct {
	Name  string        // mortise.Config.Name of the instance
	Value string        // value that was passed to Campaign or Run
	Token mortise.Token // a later Leader has a higher token
	Since time.Time     // time of the grant, by the wall clock of the group's leader; for display only
}

// Leader returns the present leader, or the zero Leader if there is none. The answer is
// linearizable. Without a majority, Leader waits for a majority until ctx ends. The errors are
// those of mortise.Node.Peek.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	info, err := e.peek(ctx, e.name)
	// During the grace of a new group, the key has a queue but no holder.
	if err != nil || len(info.Queue) == 0 || info.Queue[0].Token == 0 {
		return Leader{}, err
	}
	first := info.Queue[0]
	return Leader{Name: first.Holder, Value: first.Value, Token: first.Token, Since: first.Since}, nil
}
