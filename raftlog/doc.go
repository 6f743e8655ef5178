// Package raftlog is one replicated log.
package raftlog
