package fence

import (
	"context"
	"os"

	"github.com/mortise-lock/mortise"
)

type Store interface {
	Advance(ctx context.Context, resource string, token mortise.Token) error
}

type Ledger struct{}

func (l Ledger) Forget(ctx context.Context, resource string, before mortise.Token) (int64, error) {
	return 0, nil
}

func Run(ctx context.Context, store Store, resource string, token mortise.Token, fn func(context.Context) error) error {
	return nil
}

func WriteFile(ctx context.Context, path string, token mortise.Token, data []byte, perm os.FileMode) error {
	return nil
}
