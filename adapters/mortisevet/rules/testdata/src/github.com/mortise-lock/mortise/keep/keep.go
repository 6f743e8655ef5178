package keep

import (
	"context"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

type Acquirer = locker.Acquirer[mortise.Request, *mortise.Lock]

type Options struct{}

func Run(ctx context.Context, by Acquirer, r mortise.Request, o Options,
	fn func(ctx context.Context, l *mortise.Lock) error) error {
	return nil
}
