"""A possible sale, with the indexes that the product's own has."""

from trytond.model import Index, ModelSQL, ModelView, fields
from trytond.rpc import RPC


class Lead(ModelSQL, ModelView):
    """A lead, with a method that returns a page and its total in one call. A client of Tryton needs two calls."""

    __name__ = "lead"
    title = fields.Char("Title", required=True)
    stage = fields.Selection(
        [(each, each.title()) for each in ("new", "qualified", "proposed", "won", "lost")], "Stage"
    )
    expected_revenue_minor = fields.Integer("Expected revenue")
    contact_name = fields.Char("Contact")
    contact_email = fields.Char("E-mail")
    contact_phone = fields.Char("Phone")
    party = fields.Many2One("res.user", "Party")
    owner = fields.Many2One("res.user", "Owner")
    source = fields.Char("Source")
    expected_close = fields.Date("Expected close")
    lost_reason = fields.Char("Reason")
    notes = fields.Text("Notes")

    @classmethod
    def __setup__(cls):
        super().__setup__()
        table = cls.__table__()
        cls._sql_indexes.update(
            {
                Index(table, (table.title, Index.Range())),
                Index(table, (table.stage, Index.Equality())),
                Index(table, (table.expected_revenue_minor, Index.Range(order="ASC"))),
                Index(table, (table.expected_close, Index.Range())),
            }
        )
        cls.__rpc__["page"] = RPC()

    @classmethod
    def page(cls, domain, limit, order, names):
        """Return the rows of a domain and how many there are."""
        rows = cls.search_read(domain, limit=limit, order=order, fields_names=names)
        return {"rows": rows, "total": cls.search_count(domain)}
