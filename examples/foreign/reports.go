// Package reports stands for another project, which accepts locks and does not depend on mortise:
// its go.mod requires only the module locker, which requires nothing.
//
//	w := reports.Writer{Locks: node, Store: store} // node is a *mortise.Node
//	err := w.Write(ctx, "daily", text)
package reports

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/locker"
)

// Store keeps reports. It refuses a token that is lower than one that it has received.
type Store interface {
	Put(ctx context.Context, name, text string, token locker.Token) error
}

// Writer writes reports. It is safe for concurrent use.
type Writer struct {
	Locks locker.Locker // excludes the other instances
	Store Store
}

// ErrBusy means that the report is not written now: the lock service cannot decide, or too many
// others wait for it. The caller may try again.
var ErrBusy = errors.New("reports: try again")

// Write writes one report while no other instance writes it.
func (w *Writer) Write(ctx context.Context, name, text string) error {
	err := w.Locks.Do(ctx, "reports/"+name, func(ctx context.Context, token locker.Token) error {
		return w.Store.Put(ctx, name, text, token)
	})
	for _, busy := range []error{locker.ErrNotReady, locker.ErrOverloaded, locker.ErrQueueFull} {
		if errors.Is(err, busy) {
			return errors.Join(ErrBusy, err)
		}
	}
	return err
}
