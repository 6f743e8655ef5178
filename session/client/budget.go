package client

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// BudgetError is the error of a request that exceeds a budget of bytes. It matches ErrNoRoom.
type BudgetError struct {
	Group bool // true for the group's budget, false for the session's budget
	Bytes uint64
}

func (e *BudgetError) Error() string {
	budget := session.FormatBytes(e.Bytes)
	if e.Group {
		return "mortise: the group's budget of " + budget +
			" for all locks, waiters, values, data and sessions is used up: " +
			"release locks, or raise Config.MaxGroupBytes on all instances"
	}
	return "mortise: the session's budget of " + budget +
		" for its locks, waiters and values is used up: " +
		"release locks, use another session, or raise Config.MaxSessionBytes on all instances"
}

func (e *BudgetError) Is(target error) bool { return target == ErrNoRoom }

// BudgetErrorOf returns the error for a code that reports an exceeded budget, and nil for other
// codes.
func BudgetErrorOf(code lockfsm.Code, budget uint64) error {
	if !session.NamesBudget(code) {
		return nil
	}
	return &BudgetError{Group: code == lockfsm.OverGroupBudget, Bytes: budget}
}
