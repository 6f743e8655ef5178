package raftlog

import (
	"context"
	"fmt"
	"log/slog"

	"go.etcd.io/raft/v3"
)

// raftLogger writes raft's log lines to slog. Lines of level info and warning become debug lines,
// because raft logs each vote as info. Panic must panic, because raft would continue if it
// returned. Fatal panics instead of ending the process.
type raftLogger struct{ to *slog.Logger }

var _ raft.Logger = raftLogger{}

func (l raftLogger) log(level slog.Level, v []any) {
	if l.to.Enabled(context.Background(), level) {
		l.to.Log(context.Background(), level, "raft: "+fmt.Sprint(v...))
	}
}

func (l raftLogger) logf(level slog.Level, format string, v []any) {
	if l.to.Enabled(context.Background(), level) {
		l.to.Log(context.Background(), level, "raft: "+fmt.Sprintf(format, v...))
	}
}

const levelTrace = slog.LevelDebug - 4

func (l raftLogger) Debug(v ...any)              { l.log(levelTrace, v) }
func (l raftLogger) Debugf(f string, v ...any)   { l.logf(levelTrace, f, v) }
func (l raftLogger) Info(v ...any)               { l.log(slog.LevelDebug, v) }
func (l raftLogger) Infof(f string, v ...any)    { l.logf(slog.LevelDebug, f, v) }
func (l raftLogger) Warning(v ...any)            { l.log(slog.LevelDebug, v) }
func (l raftLogger) Warningf(f string, v ...any) { l.logf(slog.LevelDebug, f, v) }
func (l raftLogger) Error(v ...any)              { l.log(slog.LevelError, v) }
func (l raftLogger) Errorf(f string, v ...any)   { l.logf(slog.LevelError, f, v) }
func (l raftLogger) Fatal(v ...any)              { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any)   { panic("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)              { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any)   { panic("raft: " + fmt.Sprintf(f, v...)) }
