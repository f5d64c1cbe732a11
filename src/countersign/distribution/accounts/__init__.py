"""A person's own account: made once its e-mail is proven, and opened again when the password is lost."""
