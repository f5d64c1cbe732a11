"""The module `base`: the engine's own models, collected through the same door as everybody's."""

from countersign.declare import Module
from countersign.records.access.model import AgentToken, GrantRecord, RoleRecord, Session, Setting, User, UserRole
from countersign.records.approvals.model import Plan
from countersign.records.audit.model import AuditEntry

MODULE = Module(
    "base",
    label="Base",
    version="1.0.0",
    models=(User, RoleRecord, UserRole, GrantRecord, Session, AgentToken, Plan, AuditEntry, Setting),
)
