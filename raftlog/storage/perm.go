package storage

import "io/fs"

const (
	filePerm fs.FileMode = 0o600
	dirPerm  fs.FileMode = 0o700
)
