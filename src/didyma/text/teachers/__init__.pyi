from didyma.text.teachers.command import CommandTeacher as CommandTeacher
from didyma.text.teachers.endpoint import EndpointTeacher as EndpointTeacher
from didyma.text.teachers.resolution import ObjectTeacher as ObjectTeacher
from didyma.text.teachers.resolution import TeacherLike as TeacherLike
from didyma.text.teachers.resolution import resolve as resolve
from didyma.text.teachers.score_store import ScoreStore as ScoreStore
from didyma.text.teachers.teacher import Teacher as Teacher
