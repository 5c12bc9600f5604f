"""`python -m oarbank_agent_check` is the same program as `oarbank-agent-check`."""

from oarbank_agent_check.cli import main

raise SystemExit(main())
