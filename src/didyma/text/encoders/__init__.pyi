from didyma.text.encoders.encoder import Encoder as Encoder
from didyma.text.encoders.encoder import Side as Side
from didyma.text.encoders.fingerprint import Fingerprint as Fingerprint
from didyma.text.encoders.objects import ObjectEncoder as ObjectEncoder
from didyma.text.encoders.resolution import EncoderLike as EncoderLike
from didyma.text.encoders.resolution import resolve as resolve
from didyma.text.encoders.resolution import restore as restore
