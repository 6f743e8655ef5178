package rules

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// phase is what a path knows about the lock of a grant.
type phase int

const (
	free  phase = iota // not requested, or the request has failed
	asked              // requested, and the error is not known
	held
)

// path is the state of a way through a function.
type path struct {
	phase phase
	errs  bool // the error variable still has the result of the request
	facts map[string]fact
	mark  int // what the rule has seen since the lock was requested; zero at the request
}

// walk follows all paths of a function for one grant.
type walk struct {
	conditions *conditions
	grant      *grant
	// visit is called for each node that a path reaches, in every phase. It returns false if the rule
	// has no more interest in this hold, which then counts as free. It may change mark.
	visit func(n ast.Node, p *path) bool
	done  map[string]bool
}

// mostStates is how many states of paths are followed for one grant.
const mostStates = 4000

// follow calls visit along all paths. It returns false if there are too many of them.
func (f *function) follow(info *types.Info, g *grant, visit func(ast.Node, *path) bool) bool {
	if f.graph == nil || len(f.graph.Blocks) == 0 {
		return false
	}
	w := walk{conditions: conditionsOf(info, f.body), grant: g, visit: visit, done: map[string]bool{}}
	type place struct {
		block *cfg.Block
		path  path
	}
	todo := []place{{block: f.graph.Blocks[0]}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		state := fmt.Sprint(at.block.Index, at.path.phase, at.path.errs, at.path.mark, at.path.text())
		if w.done[state] {
			continue
		}
		if w.done[state] = true; len(w.done) > mostStates {
			return false
		}
		p := at.path
		if loop, is := at.block.Stmt.(*ast.RangeStmt); is && at.block.Kind == cfg.KindRangeBody {
			w.forget(loop, &p)
		}
		w.through(at.block, &p)
		condition := w.conditions.condition(at.block)
		for i, next := range at.block.Succs {
			q := p
			if value := i == 0; condition != nil {
				if known := w.truth(condition, &q); known != 0 && known != sign(value) {
					continue
				}
				w.learn(condition, value, &q)
			}
			todo = append(todo, place{next, q})
		}
	}
	return true
}

// through passes the nodes of a block.
func (w *walk) through(b *cfg.Block, p *path) {
	info := w.conditions.info
	for _, n := range b.Nodes {
		if p.phase == asked && w.reads(n) {
			p.phase = held
		}
		if !w.visit(n, p) {
			p.phase, p.mark = free, 0
		}
		w.forget(n, p)
		if n == w.grant.stmt {
			p.phase, p.mark, p.errs = asked, 0, !w.grant.all
			if w.grant.all {
				p.phase = held
			}
			continue
		}
		for _, a := range assigned(info, n) {
			if a.v == w.grant.lock && w.grant.lock != nil {
				p.phase = free
			}
		}
	}
}

// reads reports whether a node calls a method of the lock, which would panic if it were not held.
func (w *walk) reads(n ast.Node) bool {
	for _, u := range usesOf(w.conditions.info, n, w.grant.lock) {
		if u.what == keeping && u.call != nil && !u.literal {
			return true
		}
	}
	return false
}
