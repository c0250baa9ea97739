"""A page of the books that may be sold in one country, with their price in one currency.

    SHOP_DATABASE=shop SHOP_COUNTRY=US SHOP_CURRENCY=USD python3 django_shop.py runserver

It reads the tables that a PostgreSQL sink of catchword feeds (`?table=books`), and never writes them: the models are not
managed, so Django makes no migrations for them. Copy the models and `sellable` into your own project. docs/sql.md says
what the query assumes. Needs Django 3.2 or newer, and psycopg or psycopg2.
"""

import os
import sys
from datetime import datetime, timezone

import django
from django.apps import AppConfig
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path
from django.utils.html import format_html, format_html_join


class Shop(AppConfig):
    """This file is the whole app; in a project of yours, the models go into the models.py of an app."""

    name, label, path = __name__, "shop", os.path.dirname(os.path.abspath(__file__))


if not settings.configured:
    settings.configure(
        DEBUG=True,
        SECRET_KEY="only for this example",
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=[f"{__name__}.Shop"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": os.environ.get("SHOP_DATABASE", "shop"),
                "HOST": os.environ.get("SHOP_HOST", "/var/run/postgresql"),
            }
        },
    )
    django.setup()

from django.db import models  # noqa: E402  (after the settings)
from django.db.models import Q, Value  # noqa: E402
from django.db.models.functions import Coalesce, Left  # noqa: E402


class Book(models.Model):
    vbid = models.TextField(primary_key=True)
    title = models.TextField(null=True)
    contributors = models.TextField(null=True)
    format = models.TextField(null=True)
    distributable = models.BooleanField()
    on_sale_date = models.TextField(null=True)
    off_sale_date = models.TextField(null=True)
    sales_rights = models.JSONField(null=True)
    exclude_sales_rights = models.JSONField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "shop"
        managed = False  # no migrations
        db_table = "books"


class Part(models.Model):
    id = models.BigIntegerField(primary_key=True)

    class Meta:
        abstract = True
        app_label = "shop"
        managed = False


class Price(Part):
    book = models.ForeignKey(Book, models.DO_NOTHING, db_column="vbid", related_name="prices")
    sku = models.TextField(null=True)
    type = models.TextField(null=True)
    duration = models.TextField(null=True)
    currency = models.TextField(null=True)
    value = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    variant_type = models.TextField(null=True)
    variant_distributable = models.BooleanField()

    class Meta(Part.Meta):
        db_table = "books_prices"


class Contributor(Part):
    book = models.ForeignKey(Book, models.DO_NOTHING, db_column="vbid", related_name="people")
    position = models.IntegerField()
    name = models.TextField()
    type = models.TextField(null=True)

    class Meta(Part.Meta):
        db_table = "books_contributors"
        ordering = ["position"]


class Identifier(Part):
    book = models.ForeignKey(Book, models.DO_NOTHING, db_column="vbid", related_name="identifiers")
    form = models.TextField()
    value = models.TextField()

    class Meta(Part.Meta):
        db_table = "books_identifiers"


def sellable(country, currency):
    """The price of each variant that may be sold today, for ever: what docs/sql.md assumes holds here too."""
    today = datetime.now(timezone.utc).date().isoformat()
    rights, excluded = "book__sales_rights", "book__exclude_sales_rights"
    return (
        Price.objects.annotate(
            since=Left(Coalesce("book__on_sale_date", Value("")), 10),
            until=Left(Coalesce("book__off_sale_date", Value("9999")), 10),
        )
        .filter(
            ~Q(**{f"{excluded}__has_any_keys": [country, "WORLD"]}),
            ~Q(**{f"{excluded}__has_key": "ROW"}) | Q(**{f"{rights}__has_key": country}),
            **{f"{rights}__has_any_keys": [country, "WORLD", "ROW"]},
            book__removed_at=None,
            book__distributable=True,
            book__format__iregex="^(epub|pdf)$",
            variant_distributable=True,
            since__lte=today,
            until__gt=today,
            duration="perpetual",
            type="digital_list_price",
            currency=currency,
            value__isnull=False,
        )
        .order_by("book_id", "sku", "-value")
        .distinct("book_id", "sku")
        .select_related("book")
    )


def books(request):
    country = os.environ.get("SHOP_COUNTRY", "US")
    currency = os.environ.get("SHOP_CURRENCY", "USD")
    prices = sellable(country, currency)
    rows = format_html_join(
        "\n",
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} {}</td></tr>",
        ((one.book.title, one.book.contributors or "", one.book.format, f"{one.value:.2f}", currency) for one in prices[:100]),
    )
    page = "<!doctype html><meta charset=utf-8><title>Books</title><h1>{} books may be sold in {}</h1><table>{}</table>"
    return HttpResponse(format_html(page, prices.count(), country, rows))


urlpatterns = [path("", books)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
