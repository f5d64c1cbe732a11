"""Benchmark contender: an API for leads in Django REST framework, written like its tutorial, without authentication.

It runs in a virtual environment of its own. `python -m contenders.django_peer` creates the tables and one person. A
WSGI server serves `application`.
"""

import os
from urllib.parse import urlsplit

import django
from django.conf import settings


def _database() -> dict[str, object]:
    url = urlsplit(os.environ["BENCH_DATABASE"])
    if url.scheme == "sqlite":
        pragmas = "PRAGMA journal_mode = WAL; PRAGMA mmap_size = 268435456"
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.path[1:],
            "CONN_MAX_AGE": None,
            "OPTIONS": {"init_command": pragmas},
        }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": url.hostname,
        "PORT": url.port,
        "USER": url.username,
        "NAME": url.path[1:],
        "CONN_MAX_AGE": None,
    }


settings.configure(
    DEBUG=False,
    SECRET_KEY="bench",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": _database()},
    INSTALLED_APPS=["rest_framework", "contenders"],
    MIDDLEWARE=[],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "UNAUTHENTICATED_USER": None,
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
        "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.LimitOffsetPagination",
        "PAGE_SIZE": 100,
    },
)
django.setup()

# Django must be set up before models, and the classes that use them, can be declared.
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.urls import include, path  # noqa: E402
from rest_framework import filters, routers, serializers, viewsets  # noqa: E402


class Person(models.Model):
    """A person who owns leads."""

    name = models.CharField(max_length=200)

    class Meta:
        """The app that the model belongs to."""

        app_label = "contenders"


class Lead(models.Model):
    """A possible sale, with the same indexes as Countersign's lead."""

    title = models.CharField(max_length=200, db_index=True)
    stage = models.CharField(max_length=20, db_index=True)
    expected_revenue_minor = models.BigIntegerField(null=True, db_index=True)
    contact_name = models.CharField(max_length=200, null=True)
    contact_email = models.CharField(max_length=200, null=True)
    contact_phone = models.CharField(max_length=200, null=True)
    party = models.ForeignKey(Person, null=True, on_delete=models.SET_NULL, related_name="led")
    owner = models.ForeignKey(Person, null=True, on_delete=models.SET_NULL, related_name="owned")
    source = models.CharField(max_length=20, null=True)
    expected_close = models.DateField(null=True, db_index=True)
    lost_reason = models.CharField(max_length=200, null=True)
    notes = models.TextField(null=True)

    class Meta:
        """The app that the model belongs to, and the table that the benchmark fills with rows."""

        app_label = "contenders"
        db_table = "lead"


class LeadSerializer(serializers.ModelSerializer):
    """Shows the same fields as Countersign's response."""

    class Meta:
        """The model and its shown fields."""

        model = Lead
        fields = (
            "id",
            "title",
            "stage",
            "expected_revenue_minor",
            "contact_name",
            "contact_email",
            "expected_close",
            "notes",
        )


class LeadViewSet(viewsets.ModelViewSet):
    """Reads, creates, updates and deletes leads. A list can be filtered by stage and ordered."""

    queryset = Lead.objects.all()
    serializer_class = LeadSerializer
    filter_backends = (filters.OrderingFilter,)
    ordering_fields = ("expected_revenue_minor", "id")

    def get_queryset(self):
        """Return all leads, or only those of the requested stage."""
        stage = self.request.query_params.get("stage")
        return super().get_queryset().filter(stage=stage) if stage else super().get_queryset()


_router = routers.SimpleRouter()
_router.register("leads", LeadViewSet)
urlpatterns = [path("", include(_router.urls))]
application = get_wsgi_application()

if __name__ == "__main__":
    with connection.schema_editor() as editor:
        editor.create_model(Person)
        editor.create_model(Lead)
    Person.objects.create(name="Mia")
