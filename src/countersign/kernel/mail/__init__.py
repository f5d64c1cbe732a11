"""Mail: messages that cannot be forged by what is put into them, sent by SMTP or kept in a folder."""
