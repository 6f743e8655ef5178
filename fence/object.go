package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise"
)

// Object describes an object in a store with conditional writes, without its data.
type Object struct {
	Token mortise.Token // from the metadata; zero if the object has no token
	// Version is the value that a conditional write compares, such as an ETag or a generation. It
	// is never empty for an object that exists.
	Version string
}

// ObjectStore is a store with conditional writes: S3 (If-Match, If-None-Match), Google Cloud
// Storage (ifGenerationMatch), Azure (If-Match), or any HTTP server that supports ETags. The
// example of [Put] has an implementation for HTTP. The methods are called on the goroutine that
// called Put.
type ObjectStore interface {
	// Head returns the description of name. The read must be consistent with conditional writes.
	// The error wraps ErrMissing if there is no such object.
	Head(ctx context.Context, name string) (Object, error)

	// If the object still has the given version, PutIf replaces its content with data and stores
	// token in its metadata, in one atomic step. An empty version means that the object must not
	// exist. If the object has another version, PutIf writes nothing and the error wraps ErrChanged.
	PutIf(ctx context.Context, name, version string, token mortise.Token, data []byte) error
}

var (
	// ErrMissing means that there is no such row or object.
	ErrMissing = errors.New("fence: no such row or object")
	// ErrChanged means that an object has changed since it was read.
	ErrChanged = errors.New("fence: the object has changed since it was read")
)

const putTries = 32

// Put replaces the content of the object name with data. If a higher token has written the object,
// Put returns a *StaleError, whose resource is name. The same token may write any number of times.
// Put also replaces an object without a token.
//
// Put reads the object's token and version, and writes on the condition that the version has not
// changed. If it has changed, Put starts again; after 32 tries it fails with ErrChanged. After any
// other error than ErrChanged or a *StaleError, the write may have happened: call Put again with
// the same token. A deleted object loses its mark: while old holders may exist, write an empty
// object instead of deleting it.
func Put(ctx context.Context, store ObjectStore, name string, token mortise.Token, data []byte) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	for try := range putTries {
		if try > 0 { // other writers are active; the maximum pause doubles with each try
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
