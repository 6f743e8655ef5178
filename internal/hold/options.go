package hold

import (
	"context"
	"time"

	"github.com/mortise-lock/mortise"
)

// Options are the options of packages election and keep, which describe them.
type Options struct {
	Backoff    time.Duration
	MaxBackoff time.Duration
	Report     func(token mortise.Token, err error)
}

// WithDefaults returns the options with their defaults.
func (o Options) WithDefaults() Options {
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

type backoff struct {
	first, most time.Duration
	last        time.Duration // 0 before the first failure
}

// next returns the pause after a failure. lasted is the duration of the previous hold.
func (b *backoff) next(lasted time.Duration) time.Duration {
	if lasted >= b.most {
		b.last = 0 // after a long hold, the pauses begin again with the first
	}
	if b.last > b.most/2 { // twice as long might be no Duration
		b.last = b.most
	} else {
		b.last = max(b.first, 2*b.last)
	}
	return b.last
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
