"""A fitted model on one page: what it reaches, whether to trust it, and where it fails."""

from bochner.report.collect import report_data
from bochner.report.page import render_page, report_page
from bochner.report.writing import write_report

__all__ = ["render_page", "report_data", "report_page", "write_report"]
