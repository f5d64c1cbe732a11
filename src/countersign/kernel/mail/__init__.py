"""Mail: messages safe from header injection, sent by SMTP or written to a folder."""
