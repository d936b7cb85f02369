from .decision import decide as decide
from .decision import gather_evidence as gather_evidence
from .decision import teacher_of as teacher_of
from .decision import try_proposals as try_proposals
from .rollback import compare as compare
from .rollback import taken_back as taken_back
from .teacher_models import check_askable as check_askable
from .trial import try_configs as try_configs
