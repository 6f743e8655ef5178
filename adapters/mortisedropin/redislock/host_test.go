package redislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// Each error of redislock is returned as it is, and its reason is one sentence with one cause.
func TestWordsOfErrors(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, client := t.Context(), New(c.Node(0))
		var reason error
		client.Failed = func(key string, err error) { reason = err }
		one, err := client.Obtain(ctx, "a", time.Hour, nil)
		check(t, err)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		twice := func() *Options { return &Options{RetryStrategy: LimitRetry(LinearBackoff(100*time.Millisecond), 2)} }
		long := &Options{RetryStrategy: LinearBackoff(time.Minute)}
		for what, o := range map[string]struct {
			ctx   context.Context
			o     *Options
			err   error
			words string
		}{
			"no retry": {ctx, nil, ErrNotObtained, `"a" is held by node-0`},
			"retries":  {ctx, twice(), ErrNotObtained, "not free during all retries"},
			"context":  {short, long, context.DeadlineExceeded, `lock "a"`},
		} {
			_, err := client.Obtain(o.ctx, "a", time.Minute, o.o)
			if text := reason.Error(); err != o.err || !errors.Is(reason, o.err) || strings.Count(text, o.words) != 1 ||
				strings.Count(text, o.err.Error()) != 1 || strings.Contains(text, "context canceled") {
				t.Errorf("%s: %v, because of %v", what, err, reason)
			}
		}
		c.Lose(0)
		c.Ready(0)
		time.Sleep(time.Minute)
		if info, err := c.Node(2).Peek(ctx, "a"); err != nil || info.Held > 0 {
			t.Errorf("a minute later %d hold the lock: %v", info.Held, err)
		}
		if err := one.Refresh(ctx, time.Minute, nil); err != ErrNotObtained || !errors.Is(one.Err(), mortise.ErrLost) ||
			!strings.HasPrefix(one.Err().Error(), `redislock: the lock of "a" has ended: `) {
			t.Errorf("refresh: %v, because of %v", err, one.Err())
		}
		one, err = client.Obtain(ctx, "a", time.Minute, nil)
		check(t, err)
		check(t, one.Err())
		check(t, one.Release(ctx))
		c.Isolate(0)
		time.Sleep(20 * time.Second)
		if _, err := client.Obtain(ctx, "a", time.Minute, twice()); err == nil || errors.Is(err, ErrNotObtained) ||
			!strings.Contains(err.Error(), "no leader of the group was reached") {
			t.Errorf("without a leader: %v", err)
		}
		c.Heal()
		c.Ready(0)
	})
}
