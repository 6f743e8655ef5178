//go:build nextrules

package keeper

import "github.com/mortise-lock/mortise/lockfsm"

func laterKind(kind lockfsm.Kind) bool { return kind == lockfsm.Mark }
