from didyma.data.texts import by_id as by_id
from didyma.data.texts import json_lines as json_lines
from didyma.data.texts import qa as qa
from didyma.data.texts.reader import from_frame as from_frame
from didyma.data.texts.reader import read as read
from didyma.data.texts.reader import read_files as read_files
