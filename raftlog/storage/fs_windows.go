package storage

// syncDir does nothing: Windows cannot sync a directory, and NTFS journals directory changes in
// order.
func syncDir(string) error { return nil }
