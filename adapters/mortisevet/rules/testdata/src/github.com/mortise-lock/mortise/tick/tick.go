package tick

import (
	"context"

	"github.com/mortise-lock/mortise/locker"
)

type Tick struct{}

type Job struct {
	Name string
	Run  func(ctx context.Context, t Tick) error
}

func Run(ctx context.Context, locks locker.Locker, job Job) error { return nil }
