package postgres

import (
	"errors"
	"os"
	"testing"
)

func TestStartAndStop(t *testing.T) {
	s, err := Start()
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create("orders"); err != nil {
		t.Error(err)
	}
	if err := s.Create("orders"); err == nil {
		t.Error("a database was created twice")
	}
	s.Stop()
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("the directory is left")
	}
}
