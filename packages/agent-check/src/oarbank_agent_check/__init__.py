"""Read how busy a job's processes keep a device, and say it as a number, a known zero, or unknown with a reason."""
