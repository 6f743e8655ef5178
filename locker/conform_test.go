package locker_test

import (
	"testing"

	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/locker/lockertest"
)

func TestLockersConform(t *testing.T) {
	lockertest.Run(t, func(*testing.T) locker.Locker { return new(locker.Local) })
	lockertest.Run(t, func(*testing.T) locker.Locker { return locker.Func(new(locker.Local).Do) })
}
