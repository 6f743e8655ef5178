package leftover

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// find returns the running processes that the process own has started, directly or through others.
func find(own string) (left []process) {
	mark := []byte(variable + "=" + own)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents, marked := map[string]string{}, map[string]bool{}
	for _, path := range stats {
		dir := filepath.Dir(path)
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in brackets, may have spaces.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		id := filepath.Base(dir)
		parents[id] = fields[1]
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		for entry := range bytes.SplitSeq(environment, []byte{0}) {
			marked[id] = marked[id] || bytes.Equal(entry, mark)
		}
	}
	for id := range parents {
		below := marked[id]
		for at := parents[id]; at != "" && !below; at = parents[at] {
			below = at == own
		}
		if n, err := strconv.Atoi(id); err == nil && below && id != own {
			command, _ := os.ReadFile(filepath.Join("/proc", id, "cmdline"))
			left = append(left, process{n, strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))})
		}
	}
	return left
}
