package storage

// syncDir does nothing, because Windows cannot sync a directory. NTFS journals directory changes in
// order.
func syncDir(string) error { return nil }
