from .examination import Examination as Examination
from .examination import agreement as agreement
from .examination import examine as examine
from .settings import Lessons as Lessons
from .settings import LessonSettings as LessonSettings
from .settings import Rule as Rule
from .synthetic_evidence import synthetic_examples as synthetic_examples
