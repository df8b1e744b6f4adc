"""What tests share: models on disk, servers as processes, clients as raw bytes."""
