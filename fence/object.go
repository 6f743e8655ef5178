package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise"
)

// Object is what a store with conditional writes says of an object without its data.
type Object struct {
	Token mortise.Token // from its metadata; 0 if it has none there
	// what a conditional write compares: an ETag, a generation. Never empty for an object that
	// exists
	Version string
}

// ObjectStore is a store with conditional writes, which the big ones have: S3 (If-Match,
// If-None-Match), Google Cloud Storage (ifGenerationMatch), Azure (If-Match), or any HTTP server
// that honours ETags. Its implementation is a few lines around the store's own client; the example
// of [Put] has one for HTTP. Its methods are called from the goroutine that called Put.
type ObjectStore interface {
	// Head returns what the store knows of name, from a read that is consistent with its
	// conditional writes. The error wraps ErrMissing if there is no such object.
	Head(ctx context.Context, name string) (Object, error)

	// PutIf writes data, and token in the metadata of the object, in one step, if the object has
	// still that version; "" means if there is none. The error wraps ErrChanged if it has another,
	// and nothing is written then.
	PutIf(ctx context.Context, name, version string, token mortise.Token, data []byte) error
}

var (
	// ErrMissing says that there is no such row or object.
	ErrMissing = errors.New("fence: there is none")
	// ErrChanged says that an object has changed since it was looked at.
	ErrChanged = errors.New("fence: it has changed meanwhile")
)

// putTries is how often Put compares anew. Each try that fails is a write of somebody else that
// succeeded, and holders of a lock are few.
const putTries = 32

// Put makes data the content of the object name, unless a higher token has written it: then it
// returns a *StaleError, whose resource is name. The same token may write any number of times. An
// object without a token, written by somebody who does not know of fencing, is replaced.
//
// It reads the object's token and version, compares, and writes on the condition that the version
// is still the same; if it is not, it begins again, and gives up after 32 tries with ErrChanged.
// Since the store compares and writes in one step, a writer that is stopped in between does no harm
// and holds up nobody. After any other error than these two the write may have happened: call Put
// again with the same token. A deleted object is forgotten; write an empty one instead where old
// holders may still be about.
func Put(ctx context.Context, store ObjectStore, name string, token mortise.Token, data []byte) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	for try := range putTries {
		if try > 0 { // others are writing: the more of them, the longer is the mean of this pause
			if err := pause(ctx, time.Duration(rand.Int64N(int64(time.Millisecond)<<min(try, 8)))); err != nil {
				return err
			}
		}
		seen, err := store.Head(ctx, name)
		if errors.Is(err, ErrMissing) {
			seen = Object{}
		} else if err != nil {
			return err
		} else if seen.Version == "" {
			return fmt.Errorf("fence: the store gives no version of %.64q: nothing can be compared", name)
		}
		if token < seen.Token {
			return &StaleError{Resource: name, Token: token, Highest: seen.Token}
		}
		if err := store.PutIf(ctx, name, seen.Version, token, data); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("%w: %.64q, %d times in a row", ErrChanged, name, putTries)
}

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
