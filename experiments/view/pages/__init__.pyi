from .board_pages import SITE_PAGES as SITE_PAGES
from .editor_page import drawn_row as drawn_row
from .routes import page_for as page_for
from .run_charts import rates_chart as rates_chart
from .run_charts import sizes_chart as sizes_chart
from .run_page import report_page as report_page
